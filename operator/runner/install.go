package runner

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// install copies the runner to destination, so that a container of another image can start it.
func (p *Program) install(destination string) error {
	executable, err := p.Executable()
	if err != nil {
		return fmt.Errorf("find the runner itself: %w", err)
	}
	source, err := os.Open(executable)
	if err != nil {
		return fmt.Errorf("open the runner itself: %w", err)
	}
	defer func() { _ = source.Close() }()
	directory := filepath.Dir(destination)
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return fmt.Errorf("make the folder of %s: %w", destination, err)
	}
	target, err := os.CreateTemp(directory, ".ptah-runner-*")
	if err != nil {
		return fmt.Errorf("make a file beside %s: %w", destination, err)
	}
	defer func() { _ = os.Remove(target.Name()) }() // gone where it was renamed
	_, err = io.Copy(target, source)
	if err == nil {
		err = target.Chmod(0o555)
	}
	if closeErr := target.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", destination, err)
	}
	if err := os.Rename(target.Name(), destination); err != nil {
		return fmt.Errorf("put %s in its place: %w", destination, err)
	}
	return nil
}
