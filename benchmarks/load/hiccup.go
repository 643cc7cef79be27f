package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Every so often it is looked how late this process woke up, and for how long the server ran and stood in line for a core.
const looked = 2 * time.Millisecond

type glance struct {
	at                time.Time
	late, ran, queued time.Duration // since the glance before
}

// recorder says of a moment whose stall it was.
type recorder struct {
	mutex   sync.Mutex
	server  int
	glances []glance
	stop    chan struct{}
}

type stall struct {
	Millis float64 `json:"millis"`
	Late   float64 `json:"client_late"`
	Ran    float64 `json:"server_ran"`
	Queued float64 `json:"server_queued"`
	Whose  string  `json:"whose"`
}

func record(server int) *recorder {
	r := &recorder{server: server, stop: make(chan struct{})}
	go r.run()
	return r
}

func (r *recorder) run() {
	before := time.Now()
	ran, queued := schedule(r.server)
	for {
		select {
		case <-r.stop:
			return
		default:
		}
		time.Sleep(looked)
		now := time.Now()
		hasRun, hasQueued := schedule(r.server)
		r.mutex.Lock()
		r.glances = append(r.glances, glance{now, now.Sub(before) - looked, hasRun - ran, hasQueued - queued})
		r.mutex.Unlock()
		before, ran, queued = time.Now(), hasRun, hasQueued
	}
}

// of sums up what was seen between two moments; a wait of which nothing explains a third happened between both.
func (r *recorder) of(from, to time.Time) stall {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var late, ran, queued time.Duration
	for _, one := range r.glances {
		if one.at.After(from) && one.at.Before(to.Add(looked)) {
			late, ran, queued = late+one.late, ran+one.ran, queued+one.queued
		}
	}
	whose, most := "between both", to.Sub(from)/3
	for _, one := range []struct {
		name string
		took time.Duration
	}{{"the client's, or the machine's", late}, {"the server's, at work", ran}, {"the server's, in line for a core", queued}} {
		if one.took > most {
			whose, most = one.name, one.took
		}
	}
	return stall{millis(to.Sub(from)), millis(late), millis(ran), millis(queued), whose}
}

// schedule reads how long the threads of a process ran and stood in line; nothing without a process.
func schedule(server int) (ran, queued time.Duration) {
	if server == 0 {
		return 0, 0
	}
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", server))
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		var on, off int64
		if _, fault := fmt.Sscan(string(text), &on, &off); err == nil && fault == nil {
			ran, queued = ran+time.Duration(on), queued+time.Duration(off)
		}
	}
	return ran, queued
}

func millis(one time.Duration) float64 { return float64(one.Microseconds()) / 1000 }
