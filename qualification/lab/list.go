package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/moby/moby/client"

	"ptah.run/ptah/qualification/lab/cluster"
	"ptah.run/ptah/qualification/lab/engine"
	"ptah.run/ptah/qualification/lab/journal"
)

// Summary is one line of the list of labs.
type Summary struct {
	ID         string    `json:"id"`
	State      string    `json:"state"` // up, unfinished, or stopped where its containers do not run
	CreatedAt  time.Time `json:"createdAt"`
	Kubernetes string    `json:"kubernetes,omitempty"`
	Kubeconfig string    `json:"kubeconfig,omitempty"`
	Containers int       `json:"containers"` // running
}

// List returns the labs of this user, by id. Without an engine the number of containers is 0.
func List(ctx context.Context) ([]Summary, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(root)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the labs: %w", err)
	}
	connection, err := engine.Connect(ctx)
	if err == nil {
		defer func() { _ = connection.Close() }()
	}
	var summaries []Summary
	for _, entry := range entries {
		if !entry.IsDir() || entry.Name() == keptDir {
			continue
		}
		dir := filepath.Join(root, entry.Name())
		events, _, err := journal.Read(journalPath(dir))
		if err != nil {
			return nil, err
		}
		if len(events) == 0 {
			continue // it had not begun
		}
		summary, err := summarise(ctx, connection, entry.Name(), dir, events)
		if err != nil {
			return nil, err
		}
		summaries = append(summaries, summary)
	}
	return summaries, nil
}

func summarise(ctx context.Context, e *engine.Engine, id, dir string, events []journal.Entry) (Summary, error) {
	summary := Summary{ID: id, State: "unfinished", CreatedAt: events[0].At}
	if e != nil {
		for _, label := range []string{Label + "=" + id, cluster.Label + "=" + clusterName(id)} {
			list, err := e.Client().ContainerList(ctx, client.ContainerListOptions{Filters: make(client.Filters).Add("label", label)})
			if err != nil {
				return Summary{}, fmt.Errorf("list the containers of the lab %s: %w", id, err)
			}
			summary.Containers += len(list.Items)
		}
	}
	if !journal.Finished(events) {
		return summary, nil
	}
	description, err := Load(filepath.Join(dir, "lab.json"))
	if err != nil {
		return Summary{}, err
	}
	summary.State, summary.Kubernetes, summary.Kubeconfig = "up", description.KubernetesVersion, description.Kubeconfig
	if summary.Containers == 0 {
		summary.State = "stopped"
	}
	return summary, nil
}

// Logs writes what the containers and nodes of a lab logged into a folder.
func Logs(ctx context.Context, id, dir string) error {
	if _, err := Dir(id); err != nil {
		return err
	}
	connection, err := engine.Connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	return exportLogs(ctx, connection, id, dir)
}
