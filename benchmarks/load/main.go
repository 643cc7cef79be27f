// Load for benchmarks/serving.py: a client that keeps its connections, and a server that answers a constant.
//
//	load ask   -url U... : one JSON line with counts and latencies
//	load serve -body B   : listens on a free port of loopback, prints it, ends with standard input
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sort"
	"strings"
	"sync"
	"time"
)

type report struct {
	Requests int                `json:"requests"`
	Errors   int                `json:"errors"`
	First    string             `json:"first_error"`
	Seconds  float64            `json:"seconds"`
	Millis   map[string]float64 `json:"millis"`
	Worst    stall              `json:"worst"`
}

// What is posted instead of a GET; nil: nothing is.
var posted []byte

type worker struct {
	client *http.Client
	waits  []time.Duration
	worst  time.Duration
	since  time.Time // when the worst wait began
	errors int
	first  string
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		serve(os.Args[2:])
		return
	}
	ask(os.Args[2:])
}

func ask(arguments []string) {
	flags := flag.NewFlagSet("ask", flag.ExitOnError)
	urls := flags.String("urls", "", "file with one URL a line")
	ca := flags.String("ca", "", "PEM file that verifies the server")
	cert := flags.String("cert", "", "our certificate")
	key := flags.String("key", "", "its key")
	user := flags.String("user", "", "X-Remote-User")
	token := flags.String("token", "", "bearer token")
	connections := flags.Int("connections", 64, "kept connections")
	rate := flags.Float64("rate", 0, "requests a second in all; 0: as many as go")
	seconds := flags.Float64("seconds", 10, "how long")
	server := flags.Int("server", 0, "process of the server, to say whose the worst stall was")
	post := flags.String("post", "", "file with the JSON to post, instead of a GET")
	_ = flags.Parse(arguments)

	text, err := os.ReadFile(*urls)
	must(err)
	if *post != "" {
		posted, err = os.ReadFile(*post)
		must(err)
	}
	targets := strings.Fields(string(text))
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if *ca != "" {
		pool := x509.NewCertPool()
		pem, err := os.ReadFile(*ca)
		must(err)
		pool.AppendCertsFromPEM(pem)
		settings.RootCAs = pool
	}
	if *cert != "" {
		pair, err := tls.LoadX509KeyPair(*cert, *key)
		must(err)
		settings.Certificates = []tls.Certificate{pair}
	}

	workers := make([]*worker, *connections)
	var ready sync.WaitGroup
	for i := range workers {
		transport := &http.Transport{TLSClientConfig: settings.Clone(), MaxIdleConnsPerHost: 1, MaxConnsPerHost: 1}
		workers[i] = &worker{client: &http.Client{Transport: transport, Timeout: 20 * time.Second}}
		ready.Add(1)
		go func(w *worker) { // connect before the clock starts
			defer ready.Done()
			w.once(targets[0], *user, *token)
			w.waits, w.worst, w.errors, w.first = nil, 0, 0, ""
		}(workers[i])
	}
	ready.Wait()

	hiccups := record(*server)
	begin := time.Now()
	end := begin.Add(time.Duration(*seconds * float64(time.Second)))
	var done sync.WaitGroup
	for i, w := range workers {
		done.Add(1)
		go func(i int, w *worker) {
			defer done.Done()
			w.run(i, len(workers), targets, begin, end, *rate, *user, *token)
		}(i, w)
	}
	done.Wait()
	took := time.Since(begin).Seconds()
	close(hiccups.stop)
	_ = json.NewEncoder(os.Stdout).Encode(summary(workers, took, hiccups))
}

// With a rate, a request is due at its own time and waits count from there: a slow answer delays no clock.
func (w *worker) run(i, n int, targets []string, begin, end time.Time, rate float64, user, token string) {
	for k := i; ; k += n {
		due := time.Now()
		if rate > 0 {
			due = begin.Add(time.Duration(float64(k) / rate * float64(time.Second)))
			time.Sleep(time.Until(due))
		}
		if !due.Before(end) {
			return
		}
		w.once(targets[k%len(targets)], user, token)
		wait := time.Since(due)
		w.waits = append(w.waits, wait)
		if wait > w.worst {
			w.worst, w.since = wait, due
		}
	}
}

func (w *worker) once(url, user, token string) {
	method, sent := http.MethodGet, io.Reader(nil)
	if posted != nil {
		method, sent = http.MethodPost, bytes.NewReader(posted)
	}
	request, err := http.NewRequest(method, url, sent)
	must(err)
	request.Header.Set("Accept", "application/vnd.kubernetes.protobuf, */*")
	if posted != nil {
		request.Header.Set("Accept", "application/json")
		request.Header.Set("Content-Type", "application/json")
	}
	if user != "" {
		request.Header.Set("X-Remote-User", user)
		request.Header.Set("X-Remote-Group", "system:serviceaccounts")
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := w.client.Do(request)
	if err != nil {
		w.fail(err.Error())
		return
	}
	body, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil || response.StatusCode != http.StatusOK {
		w.fail(fmt.Sprintf("%d %s %v", response.StatusCode, body, err))
	}
}

func (w *worker) fail(why string) {
	w.errors++
	if w.first == "" {
		w.first = why
	}
}

func summary(workers []*worker, seconds float64, hiccups *recorder) report {
	all := report{Seconds: seconds, Millis: map[string]float64{}}
	var waits []time.Duration
	worst := workers[0]
	for _, w := range workers {
		if w.worst > worst.worst {
			worst = w
		}
		waits = append(waits, w.waits...)
		all.Errors += w.errors
		if all.First == "" {
			all.First = w.first
		}
	}
	all.Requests = len(waits)
	if all.Requests == 0 {
		return all
	}
	all.Worst = hiccups.of(worst.since, worst.since.Add(worst.worst))
	sort.Slice(waits, func(a, b int) bool { return waits[a] < waits[b] })
	for name, share := range map[string]float64{"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1} {
		place := int(share * float64(len(waits)))
		if place >= len(waits) {
			place = len(waits) - 1
		}
		all.Millis[name] = float64(waits[place].Microseconds()) / 1000
	}
	return all
}

func serve(arguments []string) {
	flags := flag.NewFlagSet("serve", flag.ExitOnError)
	body := flags.String("body", "{}", "what is answered")
	cert := flags.String("cert", "", "certificate")
	key := flags.String("key", "", "its key")
	ca := flags.String("client-ca", "", "PEM file that verifies clients")
	_ = flags.Parse(arguments)
	pair, err := tls.LoadX509KeyPair(*cert, *key)
	must(err)
	pool := x509.NewCertPool()
	pem, err := os.ReadFile(*ca)
	must(err)
	pool.AppendCertsFromPEM(pem)
	settings := &tls.Config{
		Certificates: []tls.Certificate{pair},
		ClientCAs:    pool,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		NextProtos:   []string{"http/1.1"},
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	answer := []byte(*body)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer)
	})}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	must(server.Serve(tls.NewListener(listener, settings)))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
