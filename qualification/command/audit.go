package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/audit"
)

type auditFlags struct {
	run, cell, user, from, to string
	logs                      []string
	window                    time.Duration
	servers                   int
}

// NewAuditCommand returns `ptah-qualify audit` with its subcommands.
func NewAuditCommand(streams IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:   "audit",
		Short: "Count API requests exactly, from audit logs",
		Long: `Audit counts requests from the audit logs of every API server of a cluster. A request is one audit id over all
servers, and its time is when a server received it, so that counts and the peak of a sliding window are exact for the
events that were logged. Whether those are all there were is said too: a count that is not proven complete exits with 4.`,
		Example: `  ptah-qualify audit count --run runs/soak
  ptah-qualify audit explain --run runs/soak
  ptah-qualify audit policy`,
	}
	command.AddCommand(newAuditCount(streams), newAuditExplain(streams), newAuditPolicy(streams))
	return command
}

func (f *auditFlags) add(command *cobra.Command) {
	command.Flags().StringArrayVar(&f.logs, "log", nil, "SERVER=FILE, the audit log of one API server; repeat for each server and each rotated part")
	command.Flags().StringVar(&f.run, "run", "", "directory of a run, instead of --log")
	command.Flags().StringVar(&f.cell, "cell", "", "cell of the run; may be left out where the run has one")
	command.Flags().StringVar(&f.user, "user", "", "count the requests of this user name only")
	command.Flags().StringVar(&f.from, "from", "", "start of what is counted, as 2006-01-02T15:04:05Z; the first event where left out")
	command.Flags().StringVar(&f.to, "to", "", "end of what is counted, both ends included; the last event where left out")
	command.Flags().DurationVar(&f.window, "window", time.Minute, "length of the sliding window")
	command.Flags().IntVar(&f.servers, "servers", 0, "number of API servers the cluster has; as many as there are logs where left out")
	completeAudit(command)
}

// counted is what the flags select.
type counted struct {
	set      audit.Set
	events   []audit.Event
	interval audit.Interval
	defects  []audit.Defect
}

func (f *auditFlags) load() (counted, error) {
	set, err := f.set()
	if err != nil {
		return counted{}, err
	}
	if len(set.Events) == 0 {
		return counted{}, Exit(ExitNotEstablished, errors.New("the audit logs hold no event, so there is nothing to count"))
	}
	c := counted{set: set, interval: audit.Interval{From: set.Events[0].Received, To: set.Events[len(set.Events)-1].Received}}
	bounded := false
	for _, bound := range []struct {
		text string
		into *time.Time
	}{{f.from, &c.interval.From}, {f.to, &c.interval.To}} {
		if bound.text == "" {
			continue
		}
		bounded = true
		if *bound.into, err = time.Parse(time.RFC3339Nano, bound.text); err != nil {
			return c, Exit(ExitUsage, fmt.Errorf("%q is no time, write it as 2006-01-02T15:04:05Z", bound.text))
		}
	}
	if c.interval.To.Before(c.interval.From) {
		return c, Exit(ExitUsage, errors.New("--to lies before --from"))
	}
	c.events = set.Events
	if f.user != "" {
		c.events = set.Where(audit.ByUser(f.user))
	}
	c.events = audit.Between(c.events, c.interval)
	servers := f.servers
	if servers == 0 {
		servers = len(set.Servers)
	}
	c.defects = set.Defects
	if bounded || f.servers > 0 {
		c.defects = set.Check(servers, c.interval.From, c.interval.To)
	}
	return c, nil
}

func (f *auditFlags) set() (audit.Set, error) {
	switch {
	case (f.run == "") == (len(f.logs) == 0):
		return audit.Set{}, Exit(ExitUsage, errors.New("name either a run with --run or logs with --log SERVER=FILE"))
	case f.run != "":
		return f.fromRun()
	}
	var logs []audit.Log
	for _, named := range f.logs {
		server, path, ok := strings.Cut(named, "=")
		if !ok || server == "" {
			return audit.Set{}, Exit(ExitUsage, fmt.Errorf("--log takes SERVER=FILE, not %q", named))
		}
		file, err := os.Open(path)
		if err != nil {
			return audit.Set{}, Exit(ExitUsage, fmt.Errorf("cannot read the audit log %s: %w", path, reason(err)))
		}
		log, err := audit.Parse(server, file, true)
		_ = file.Close()
		if err != nil {
			return audit.Set{}, Exit(ExitHarnessFailed, err)
		}
		logs = append(logs, log)
	}
	return audit.Merge(logs...), nil
}

func (f *auditFlags) fromRun() (audit.Set, error) {
	d, err := LoadRun(f.run)
	if err != nil {
		return audit.Set{}, err
	}
	if f.cell == "" && len(d.Cells) == 1 {
		f.cell = d.Cells[0].Evidence.Cell
	}
	cell, err := d.Cell(f.cell)
	if err != nil {
		return audit.Set{}, Exit(ExitUsage, fmt.Errorf("run %s has no finished cell %q, name one with --cell", d.RunID, f.cell))
	}
	if cell.Evidence.Audit == nil {
		return audit.Set{}, Exit(ExitNotEstablished, fmt.Errorf("cell %s kept no audit log", f.cell))
	}
	if f.servers == 0 {
		f.servers = d.Profile.Cluster.ControlPlanes
	}
	return cell.Evidence.Audit.Set, nil
}

func newAuditCount(streams IOStreams) *cobra.Command {
	var flags auditFlags
	command := &cobra.Command{
		Use:   "count",
		Short: "Count requests per identity, and the exact peak of a sliding window",
		Long: `Count prints how many requests each identity sent, and the busiest position of a sliding window over them. It
reads the logs that a run kept, or files of any cluster that writes its audit log in blocking mode.`,
		Example: `  # The manager's requests in a run, and the busiest 60 s of them
  ptah-qualify audit count --run runs/soak --user system:serviceaccount:ptah-system:ptah-operator

  # Logs of three API servers, one of them rotated
  ptah-qualify audit count --log a=a.log --log b=b.log --log c=c.1.log --log c=c.log --servers 3`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c, err := flags.load()
			if err != nil {
				return err
			}
			peak := audit.SlidingPeak(c.events, flags.window)
			printf(streams.Out, "%d requests from %s to %s, %d API servers\n", len(c.events), stamp(c.interval.From), stamp(c.interval.To), len(c.set.Servers))
			printf(streams.Out, "busiest %s: %d requests, ending %s\n\n", flags.window, peak.Count, stamp(peak.To))
			if err := printGroups(streams.Out, "COUNT\tIDENTITY", audit.GroupBy(c.events, audit.ByIdentity)); err != nil {
				return err
			}
			return c.finish(streams.Out)
		},
	}
	flags.add(command)
	return command
}

func newAuditExplain(streams IOStreams) *cobra.Command {
	var flags auditFlags
	command := &cobra.Command{
		Use:   "explain",
		Short: "Say what the requests were: verb, resource and status, and the Pods that sent them",
		Long: `Explain groups requests by verb, resource and status, and by the Pod whose token was used, the largest group
first. It is for finding what a count is made of.`,
		Example: `  # What the manager asked for in one minute of a run
  ptah-qualify audit explain --run runs/soak --user system:serviceaccount:ptah-system:ptah-operator \
    --from 2026-11-29T18:12:00Z --to 2026-11-29T18:13:00Z`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c, err := flags.load()
			if err != nil {
				return err
			}
			printf(streams.Out, "%d requests from %s to %s\n\n", len(c.events), stamp(c.interval.From), stamp(c.interval.To))
			if err := printGroups(streams.Out, "COUNT\tVERB\tWHAT\tSTATUS", audit.GroupBy(c.events, audit.ByRequest)); err != nil {
				return err
			}
			printLine(streams.Out)
			if err := printGroups(streams.Out, "COUNT\tPOD", audit.GroupBy(c.events, audit.ByPod)); err != nil {
				return err
			}
			return c.finish(streams.Out)
		},
	}
	flags.add(command)
	return command
}

func newAuditPolicy(streams IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "policy",
		Short: "Print the audit policy that the API servers of a lab run with",
		Long: `Policy prints the audit policy of a lab: one event for each request of every identity, with its metadata and
without bodies. An API server must write its log in blocking mode for a count from it to be proven complete.`,
		Example: `  ptah-qualify audit policy > audit-policy.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(streams.Out, audit.Policy)
			return err
		},
	}
}

func printGroups(out io.Writer, head string, groups []audit.Group) error {
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	printLine(table, head)
	for _, group := range groups {
		printf(table, "%d\t%s\n", group.Count, strings.Join(group.Words, "\t"))
	}
	return table.Flush()
}

// finish names the defects. A count with defects is not established, whatever it came to.
func (c counted) finish(out io.Writer) error {
	for _, defect := range c.defects {
		printf(out, "incomplete: %s %s\n", defect.Server, defect.Message)
	}
	if len(c.defects) > 0 {
		return Exit(ExitNotEstablished, fmt.Errorf("the count is not proven complete: %d defects", len(c.defects)))
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
