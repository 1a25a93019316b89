package cluster

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"sigs.k8s.io/kind/pkg/log"
)

// logger writes what kind says as plain lines.
type logger struct {
	mutex sync.Mutex
	out   io.Writer
}

var _ log.Logger = (*logger)(nil)

func (l *logger) line(text string) {
	if l.out == nil {
		return
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	_, _ = fmt.Fprintln(l.out, strings.TrimRight(text, "\n")) // kind goes on without its log
}

// Warn implements log.Logger.
func (l *logger) Warn(message string) { l.line("warning: " + message) }

// Warnf implements log.Logger.
func (l *logger) Warnf(format string, arguments ...any) { l.Warn(fmt.Sprintf(format, arguments...)) }

// Error implements log.Logger.
func (l *logger) Error(message string) { l.line("error: " + message) }

// Errorf implements log.Logger.
func (l *logger) Errorf(format string, arguments ...any) { l.Error(fmt.Sprintf(format, arguments...)) }

// V implements log.Logger.
func (l *logger) V(level log.Level) log.InfoLogger { return infoLogger{l, level <= 3} }

type infoLogger struct {
	*logger
	enabled bool
}

// Info implements log.InfoLogger.
func (i infoLogger) Info(message string) {
	if i.enabled {
		i.line(message)
	}
}

// Infof implements log.InfoLogger.
func (i infoLogger) Infof(format string, arguments ...any) { i.Info(fmt.Sprintf(format, arguments...)) }

// Enabled implements log.InfoLogger.
func (i infoLogger) Enabled() bool { return i.enabled }
