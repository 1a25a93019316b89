package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"

	"ptah.run/ptah/qualification/lab/cluster"
	"ptah.run/ptah/qualification/lab/engine"
	"ptah.run/ptah/qualification/lab/journal"
)

const (
	removeLimit  = 3 * time.Minute
	settlePeriod = 500 * time.Millisecond
)

// Removal says what Down did.
type Removal struct {
	Found      bool   // there was something of this lab
	Containers int    // removed
	KeptLogs   string // folder with what a failed lab logged
	LogProblem error  // why not all of its logs could be had
}

// Down removes a lab, by its journal and its labels: containers with their volumes, the network, credentials and
// the lab's folder. What a lab that never came up logged is kept aside, and removed too where purge is set. Where
// nothing is left of the lab, Found is false and nothing happens.
func Down(ctx context.Context, id string, purge bool) (Removal, error) {
	dir, err := Dir(id)
	if err != nil {
		return Removal{}, err
	}
	if purge {
		if err := removeKept(dir); err != nil {
			return Removal{}, err
		}
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return downWithoutFolder(ctx, id, dir)
	}
	connection, err := engine.Connect(ctx)
	if err != nil {
		return Removal{}, err
	}
	defer func() { _ = connection.Close() }()
	lock, err := lockFolder(dir)
	if err != nil {
		return Removal{}, err
	}
	defer func() { _ = lock.Close() }() // the lock ends with the process at the latest
	entries, _, err := journal.Read(journalPath(dir))
	if err != nil {
		return Removal{}, err
	}
	if err := awaitInFlight(ctx, connection, entries); err != nil {
		return Removal{}, err
	}
	removal, err := remove(ctx, connection, id, dir, entries, !purge && !journal.Finished(entries))
	if err != nil {
		return removal, err
	}
	if err := os.Remove(dir + ".lock"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return removal, fmt.Errorf("remove the lab's lock: %w", err)
	}
	return removal, nil
}

// downWithoutFolder removes what carries the lab's label although its folder is gone.
func downWithoutFolder(ctx context.Context, id, dir string) (Removal, error) {
	connection, err := engine.Connect(ctx)
	var unreachable *engine.UnreachableError
	if errors.As(err, &unreachable) {
		return Removal{}, nil // without an engine and without a folder there is no lab
	}
	if err != nil {
		return Removal{}, err
	}
	defer func() { _ = connection.Close() }()
	return remove(ctx, connection, id, dir, nil, false)
}

// remove removes the objects of a lab and its folder, but for the logs where they are kept. The caller holds the
// lock where the lab has a folder.
func remove(ctx context.Context, e *engine.Engine, id, dir string, entries []journal.Entry, keepLogs bool) (Removal, error) {
	removal := Removal{Found: len(entries) > 0}
	// Commands of kind's outlive a killed process and would make further containers.
	if err := endOrphans("/proc", networkName(id)); err != nil {
		return removal, err
	}
	if keepLogs && !journal.Exported(entries) {
		// What cannot be had of a half-made lab's logs is no reason to leave the lab.
		removal.LogProblem = exportLogs(ctx, e, id, filepath.Join(dir, "logs"))
	}
	for quiet := 0; quiet < 2; quiet++ {
		count, err := removeContainers(ctx, e, id, entries)
		removal.Containers += count
		if err != nil {
			return removal, err
		}
		if count > 0 {
			removal.Found = true
			quiet = -1
			time.Sleep(settlePeriod) // a request that was on its way when its sender died becomes visible
		}
	}
	found, err := removeNetworks(ctx, e, id, entries)
	removal.Found = removal.Found || found
	if err != nil {
		return removal, err
	}
	for _, name := range secrets {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return removal, fmt.Errorf("remove the lab's credentials: %w", err)
		}
	}
	if keepLogs && hasFiles(filepath.Join(dir, "logs")) {
		if removal.KeptLogs, err = keepAside(dir); err != nil {
			return removal, err
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return removal, fmt.Errorf("remove the lab's folder: %w", err)
	}
	return removal, nil
}

func hasFiles(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) > 0
}

// keptDir is the folder beside the labs' in which the logs of failed labs stay. No lab can have its name.
const keptDir = ".failed"

// keepAside moves what a failed lab logged out of its folder. Its credentials are gone by now.
func keepAside(dir string) (string, error) {
	kept := filepath.Join(filepath.Dir(dir), keptDir, filepath.Base(dir)+time.Now().UTC().Format("-20060102T150405.000"))
	if err := os.MkdirAll(kept, 0o700); err != nil {
		return "", fmt.Errorf("keep the logs of the failed lab: %w", err)
	}
	for _, name := range []string{"logs", "audit", "database", "journal.jsonl"} {
		err := os.Rename(filepath.Join(dir, name), filepath.Join(kept, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("keep the logs of the failed lab: %w", err)
		}
	}
	return kept, nil
}

// removeKept removes the kept logs of a lab's id.
func removeKept(dir string) error {
	kept, err := filepath.Glob(filepath.Join(filepath.Dir(dir), keptDir, filepath.Base(dir)+"-????????T??????.???"))
	if err != nil {
		return err
	}
	for _, path := range kept {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove the kept logs of the lab: %w", err)
		}
	}
	if len(kept) > 0 {
		_ = os.Remove(filepath.Join(filepath.Dir(dir), keptDir)) // stays where another lab's logs lie in it
	}
	return nil
}

// removeContainers removes what carries the lab's label or the cluster's, and what the journal names if it carries
// one of them: a container of somebody else's that has such a name stays.
func removeContainers(ctx context.Context, e *engine.Engine, id string, entries []journal.Entry) (int, error) {
	labels := []string{Label + "=" + id, cluster.Label + "=" + clusterName(id)}
	for _, name := range journal.Objects(entries, journal.Cluster) {
		if label := cluster.Label + "=" + name; label != labels[1] {
			labels = append(labels, label)
		}
	}
	removed := 0
	for _, label := range labels {
		list, err := e.Client().ContainerList(ctx, client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", label)})
		if err != nil {
			return removed, fmt.Errorf("list the containers of the lab: %w", err)
		}
		for _, item := range list.Items {
			_, err := e.Client().ContainerRemove(ctx, item.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
			if cerrdefs.IsNotFound(err) || cerrdefs.IsConflict(err) { // gone, or being removed
				removed++
				continue
			}
			if err != nil {
				return removed, fmt.Errorf("remove the container %s: %w", strings.Join(item.Names, " "), err)
			}
			removed++
		}
	}
	return removed, nil
}

func removeNetworks(ctx context.Context, e *engine.Engine, id string, entries []journal.Entry) (bool, error) {
	list, err := e.Client().NetworkList(ctx, client.NetworkListOptions{Filters: make(client.Filters).Add("label", Label+"="+id)})
	if err != nil {
		return false, fmt.Errorf("list the networks of the lab: %w", err)
	}
	for _, item := range list.Items {
		if _, err := e.Client().NetworkRemove(ctx, item.ID, client.NetworkRemoveOptions{}); err != nil && !cerrdefs.IsNotFound(err) {
			return true, fmt.Errorf("remove the network %s: %w", item.Name, err)
		}
	}
	return len(list.Items) > 0, nil
}

// endOrphans ends the commands that kind started for this lab and that outlived the process that called kind. They
// are known by the network in their environment.
func endOrphans(proc, network string) error {
	marker := []byte(cluster.NetworkVariable + "=" + network)
	files, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "environ"))
	if err != nil {
		return err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil || !holds(content, marker) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("end the process %d, which an interrupted lab left: %w", pid, err)
		}
	}
	return nil
}

func endOrphansUntil(done <-chan struct{}, network string) {
	for {
		_ = endOrphans("/proc", network) // what cannot be ended now is found again by the removal of the lab
		select {
		case <-done:
			return
		case <-time.After(settlePeriod):
		}
	}
}

func holds(environment, marker []byte) bool {
	for _, variable := range bytes.Split(environment, []byte{0}) {
		if bytes.Equal(variable, marker) {
			return true
		}
	}
	return false
}

// exportLogs writes what the lab's nodes and containers logged into a folder. It takes what it can get.
func exportLogs(ctx context.Context, e *engine.Engine, id, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the folder for logs: %w", err)
	}
	nodes, err := e.Client().ContainerList(ctx, client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", cluster.Label+"="+clusterName(id))})
	if err != nil {
		return fmt.Errorf("list the nodes of the lab: %w", err)
	}
	var found problems
	if len(nodes.Items) > 0 {
		found = append(found, cluster.CollectLogs(clusterName(id), filepath.Join(dir, "cluster"), io.Discard))
	}
	own, err := e.Client().ContainerList(ctx, client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", Label+"="+id)})
	if err != nil {
		return append(found, fmt.Errorf("list the containers of the lab: %w", err))
	}
	for _, item := range own.Items {
		name := strings.TrimPrefix(item.Names[0], "/")
		found = append(found, exportContainer(ctx, e, item.ID, filepath.Join(dir, name+".log")))
	}
	if len(found.Unwrap()) == 0 {
		return nil
	}
	return found
}

func exportContainer(ctx context.Context, e *engine.Engine, id, file string) error {
	logs, err := e.Client().ContainerLogs(ctx, id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Timestamps: true})
	if err != nil {
		return fmt.Errorf("read the log of a container: %w", err)
	}
	defer func() { _ = logs.Close() }()
	out, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("write the log of a container: %w", err)
	}
	_, err = stdcopy.StdCopy(out, out, logs)
	return errors.Join(err, out.Close())
}
