package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// stages tells a person where a long command is: one line per stage with the time it takes. On a terminal the line of
// the running stage is alive; elsewhere there is one timestamped line when a stage begins and one when it ends.
type stages struct {
	out   io.Writer
	live  bool
	now   func() time.Time
	begin time.Time

	mutex sync.Mutex
	name  string
	start time.Time
	note  string
}

func newStages(out io.Writer) *stages {
	file, isFile := out.(*os.File)
	s := &stages{out: out, live: isFile && term.IsTerminal(int(file.Fd())), now: time.Now}
	s.begin = s.now()
	return s
}

// Run runs one stage. The writer that the work gets shows its last line beside a live stage, and is indented in a log.
func (s *stages) Run(ctx context.Context, name string, work func(context.Context, io.Writer) error) error {
	s.mutex.Lock()
	s.name, s.note, s.start = name, "", s.now()
	s.mutex.Unlock()
	stop := s.animate()
	err := work(ctx, &noteWriter{stages: s})
	stop()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	result := "done"
	if err != nil {
		result = "FAILED"
	}
	s.clear()
	printf(s.out, "%8s  %-10s %-7s %s\n", clock(s.now().Sub(s.begin)), name, result, clock(s.now().Sub(s.start)))
	return err
}

// animate rewrites the line of the running stage each second, or writes the one line that a log gets.
func (s *stages) animate() (stop func()) {
	if !s.live {
		printf(s.out, "%8s  %-10s started %s\n", clock(s.now().Sub(s.begin)), s.name, s.now().UTC().Format(time.RFC3339))
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			s.mutex.Lock()
			s.draw()
			s.mutex.Unlock()
			select {
			case <-done:
				return
			case <-ticker.C:
			}
		}
	}()
	return func() { close(done); <-ended }
}

func (s *stages) draw() {
	s.clear()
	line := fmt.Sprintf("%8s  %-10s running %s  %s", clock(s.now().Sub(s.begin)), s.name, clock(s.now().Sub(s.start)), s.note)
	if file, ok := s.out.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && len(line) >= width && width > 0 {
			line = line[:width-1]
		}
	}
	printf(s.out, "%s", line)
}

func (s *stages) clear() {
	if s.live {
		printf(s.out, "\r\x1b[K")
	}
}

// clock is minutes and seconds.
func clock(d time.Duration) string {
	return fmt.Sprintf("%d:%04.1f", int(d.Minutes()), d.Seconds()-60*float64(int(d.Minutes())))
}

// noteWriter takes the output of a stage's work, line by line.
type noteWriter struct {
	stages *stages
	rest   []byte
}

func (w *noteWriter) Write(data []byte) (int, error) {
	w.stages.mutex.Lock()
	defer w.stages.mutex.Unlock()
	w.rest = append(w.rest, data...)
	for {
		end := bytes.IndexByte(w.rest, '\n')
		if end < 0 {
			return len(data), nil
		}
		line := string(w.rest[:end])
		w.rest = w.rest[end+1:]
		if w.stages.live {
			w.stages.note = line
		} else if line != "" {
			printf(w.stages.out, "          | %s\n", line)
		}
	}
}
