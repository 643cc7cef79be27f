// What the histograms of the VPA recommender cost: each line of stdin is a series of samples of one container.
// Prints CPU microseconds a sample and a recommendation of three percentiles.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/util"
)

func cpu() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	seconds := func(one syscall.Timeval) float64 { return float64(one.Sec) + float64(one.Usec)/1e6 }
	return seconds(used.Utime) + seconds(used.Stime)
}

func main() {
	var series [][]float64
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), 1<<20)
	for lines.Scan() {
		var values []float64
		for _, word := range strings.Fields(lines.Text()) {
			value, err := strconv.ParseFloat(word, 64)
			if err != nil {
				panic(err)
			}
			values = append(values, value)
		}
		series = append(series, values)
	}
	options, err := util.NewExponentialHistogramOptions(1000, 0.01, 1.05, 0.0001)
	if err != nil {
		panic(err)
	}
	const repeats = 20
	samples, asked, adding, asking, sum := 0, 0, 0.0, 0.0, 0.0
	for round := 0; round < repeats; round++ {
		for _, values := range series {
			histogram := util.NewDecayingHistogram(options, 24*time.Hour)
			at, before := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), cpu()
			for _, value := range values {
				at = at.Add(5 * time.Minute)
				histogram.AddSample(value, max(value, 0.1), at)
			}
			between := cpu()
			for again := 0; again < 100; again++ {
				sum += histogram.Percentile(0.5) + histogram.Percentile(0.9) + histogram.Percentile(0.95)
			}
			adding, asking = adding+between-before, asking+cpu()-between
			samples, asked = samples+len(values), asked+100
		}
	}
	fmt.Printf("%g %g %g\n", 1e6*adding/float64(samples), 1e6*asking/float64(asked), sum)
}
