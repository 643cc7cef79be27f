// Command keda-client asks an external scaler what KEDA asks it, through KEDA's own generated client.
//
//	keda-client -address HOST:PORT [-ca FILE -certificate FILE -key FILE] [-seconds N] CALL NAMESPACE NAME [KEY=VALUE...]
//
// CALL is IsActive, GetMetricSpec, GetMetrics, StreamIsActive or StreamMetricSpec. Each answer is one line of JSON; an
// error is one line {"error": CODE} and exit status 1. CALL may be Load, too: -rate calls of GetMetrics a second for
// -seconds, of the workloads NAME-0000 to NAME-9999; its one line has the quantiles of their times, taken from when each
// was due.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

func main() {
	address := flag.String("address", "", "HOST:PORT of the scaler")
	ca := flag.String("ca", "", "certificate of its authority; none: plaintext")
	certificate := flag.String("certificate", "", "our certificate")
	key := flag.String("key", "", "our key")
	seconds := flag.Float64("seconds", 5, "time for the whole call; a stream ends then without an error")
	rate := flag.Int("rate", 500, "of Load: calls a second")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(*seconds*float64(time.Second)))
	defer cancel()
	connection, err := grpc.NewClient(*address, grpc.WithTransportCredentials(transport(*ca, *certificate, *key)))
	refuse(err)
	if flag.Arg(0) == "Load" {
		load(pb.NewExternalScalerClient(connection), *rate, *seconds)
		return
	}
	call(ctx, pb.NewExternalScalerClient(connection), flag.Args())
}

func load(scaler pb.ExternalScalerClient, rate int, seconds float64) {
	count := int(float64(rate) * seconds)
	times, begin, failed := make([]float64, count), time.Now(), atomic.Int64{}
	var calls sync.WaitGroup
	for i := range count {
		due := begin.Add(time.Duration(float64(i) / float64(rate) * float64(time.Second)))
		time.Sleep(time.Until(due))
		calls.Add(1)
		go func() {
			defer calls.Done()
			if _, err := scaler.GetMetrics(context.Background(), workload(i)); err != nil {
				failed.Add(1)
			}
			times[i] = time.Since(due).Seconds()
		}()
	}
	calls.Wait()
	took := time.Since(begin).Seconds()
	sort.Float64s(times)
	at := func(quantile float64) float64 { return times[int(quantile*float64(count-1))] * 1000 }
	say(map[string]any{"calls": count, "failed": failed.Load(), "per_second": float64(count) / took,
		"p50_ms": at(0.5), "p99_ms": at(0.99), "p999_ms": at(0.999), "worst_ms": at(1)})
}

func workload(i int) *pb.GetMetricsRequest {
	object := &pb.ScaledObjectRef{Namespace: flag.Arg(1), Name: fmt.Sprintf("%s-%04d", flag.Arg(2), i*7919%10000),
		ScalerMetadata: map[string]string{"signal": "cpu", "target": "500m", "scalerAddress": "forecaster-keda.forecaster:9090"}}
	return &pb.GetMetricsRequest{ScaledObjectRef: object, MetricName: "cpu"}
}

func call(ctx context.Context, scaler pb.ExternalScalerClient, arguments []string) {
	metadata := map[string]string{}
	for _, pair := range arguments[3:] {
		name, value, _ := strings.Cut(pair, "=")
		metadata[name] = value
	}
	object := &pb.ScaledObjectRef{Namespace: arguments[1], Name: arguments[2], ScalerMetadata: metadata}
	switch arguments[0] {
	case "IsActive":
		answer, err := scaler.IsActive(ctx, object)
		refuse(err)
		say(map[string]any{"result": answer.GetResult()})
	case "GetMetricSpec":
		answer, err := scaler.GetMetricSpec(ctx, object)
		refuse(err)
		sayAll(specs(answer))
	case "GetMetrics":
		request := &pb.GetMetricsRequest{ScaledObjectRef: object, MetricName: metadata["metricName"]}
		answer, err := scaler.GetMetrics(ctx, request)
		refuse(err)
		sayAll(values(answer))
	case "StreamIsActive":
		stream, err := scaler.StreamIsActive(ctx, object)
		refuse(err)
		for {
			answer, err := stream.Recv()
			ended(err)
			say(map[string]any{"result": answer.GetResult()})
		}
	case "StreamMetricSpec":
		stream, err := scaler.StreamMetricSpec(ctx, object)
		refuse(err)
		for {
			answer, err := stream.Recv()
			ended(err)
			sayAll(specs(answer))
		}
	default:
		refuse(fmt.Errorf("unknown call %q", arguments[0]))
	}
}

func specs(answer *pb.GetMetricSpecResponse) []map[string]any {
	var lines []map[string]any
	for _, each := range answer.GetMetricSpecs() {
		lines = append(lines, map[string]any{
			"metricName": each.GetMetricName(), "targetSize": each.GetTargetSize(), "targetSizeFloat": each.GetTargetSizeFloat(),
		})
	}
	return lines
}

func values(answer *pb.GetMetricsResponse) []map[string]any {
	var lines []map[string]any
	for _, each := range answer.GetMetricValues() {
		lines = append(lines, map[string]any{
			"metricName": each.GetMetricName(), "metricValue": each.GetMetricValue(), "metricValueFloat": each.GetMetricValueFloat(),
		})
	}
	return lines
}

func transport(ca, certificate, key string) credentials.TransportCredentials {
	if ca == "" {
		return insecure.NewCredentials()
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	text, err := os.ReadFile(ca)
	refuse(err)
	config.RootCAs.AppendCertsFromPEM(text)
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		refuse(err)
		config.Certificates = []tls.Certificate{pair}
	}
	return credentials.NewTLS(config)
}

// ended leaves without an error when the stream is over or its time is up. The library may say so a moment before the
// clock of the context does, so its code is what counts.
func ended(err error) {
	if errors.Is(err, io.EOF) || status.Code(err) == codes.DeadlineExceeded {
		os.Exit(0)
	}
	refuse(err)
}

func refuse(err error) {
	if err != nil {
		say(map[string]any{"error": status.Code(err).String(), "message": err.Error()})
		os.Exit(1)
	}
}

func sayAll(lines []map[string]any) {
	for _, line := range lines {
		say(line)
	}
}

func say(line map[string]any) {
	text, _ := json.Marshal(line)
	fmt.Println(string(text))
}
