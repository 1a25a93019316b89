// Package lab makes and removes laboratories on this machine: a Kubernetes cluster, a registry with TLS and a
// password, and a database that journals every statement, on one network of the local container engine. A lab can be
// removed from its journal alone whatever moment it stopped at; several labs exist side by side; nothing listens on
// or sends to an address outside this machine.
package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"ptah.run/ptah/qualification/lab/catalog"
	"ptah.run/ptah/qualification/lab/cluster"
	"ptah.run/ptah/qualification/lab/doctor"
	"ptah.run/ptah/qualification/lab/engine"
	"ptah.run/ptah/qualification/lab/journal"
	"ptah.run/ptah/qualification/lab/progress"
	"ptah.run/ptah/qualification/lab/source"
)

// Options say what kind of lab is wanted. The zero value is a lab with one control plane of the default version.
type Options struct {
	ID              string // DefaultID where empty
	Repository      string // folder of this repository; found from the working folder where empty
	Source          string // modules where empty
	ControlPlanes   int    // 1 or 3; 0 means 1
	Workers         int    // 0 to 9
	Kubernetes      string // a version of the catalogue; its default where empty
	Database        string // PostgreSQL or MySQL; PostgreSQL where empty
	DatabaseVersion string // a version of the catalogue; its default where empty
	APIPort         int    // on 127.0.0.1; 0 takes a free one, as for the two below
	RegistryPort    int
	DatabasePort    int
	Retain          bool // keep everything after a failure
	Progress        *progress.Reporter
}

// AlreadyUpError says that a lab of this id exists.
type AlreadyUpError struct{ ID string }

func (e *AlreadyUpError) Error() string {
	return fmt.Sprintf("the lab %s is up already: use it, give another --id, or run `ptah-qualify lab down --id %s` first", e.ID, e.ID)
}

func (o *Options) complete() error {
	if o.ID == "" {
		o.ID = DefaultID
	}
	if o.ControlPlanes == 0 {
		o.ControlPlanes = 1
	}
	if o.ControlPlanes != 1 && o.ControlPlanes != 3 {
		return &UsageError{fmt.Sprintf("a lab has 1 or 3 control planes, not %d", o.ControlPlanes)}
	}
	if o.Workers < 0 || o.Workers > 9 {
		return &UsageError{fmt.Sprintf("a lab has 0 to 9 workers, not %d", o.Workers)}
	}
	if o.Source == "" {
		o.Source = source.ModulesName
	}
	if err := o.completeDatabase(); err != nil {
		return err
	}
	for flag, port := range map[string]int{"--api-port": o.APIPort, "--registry-port": o.RegistryPort, "--database-port": o.DatabasePort} {
		if err := portFree(flag, port); err != nil {
			return err
		}
	}
	if o.Repository == "" {
		var err error
		o.Repository, err = FindRepository(".")
		return err
	}
	return nil
}

func (o *Options) completeDatabase() error {
	if o.Database == "" {
		o.Database = PostgreSQL
	}
	_, err := DatabaseRole(o.Database)
	return err
}

// PortInUseError says that a port which was asked for is taken.
type PortInUseError struct {
	Flag string
	Port int
}

func (e *PortInUseError) Error() string {
	return fmt.Sprintf("port %d on 127.0.0.1 is in use: give another %s, or 0 to take a free one", e.Port, e.Flag)
}

func portFree(flag string, port int) error {
	if port == 0 {
		return nil
	}
	if port < 0 || port > 65535 {
		return &UsageError{fmt.Sprintf("%s %d is no port", flag, port)}
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return &PortInUseError{Flag: flag, Port: port}
	}
	return listener.Close()
}

// Up makes a lab and returns its description when its cluster, registry and database serve. After a failure the
// logs lie in the lab's folder and everything else is removed, unless Options.Retain says otherwise. A lab that an
// earlier process left unfinished is removed first.
func Up(ctx context.Context, options Options) (*Description, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	dir, err := Dir(options.ID)
	if err != nil {
		return nil, err
	}
	images, err := OpenImages(options.Repository, options.Source, options.Progress)
	if err != nil {
		return nil, err
	}
	for _, one := range options.images() {
		if _, err := images.Catalog.Image(one.role, one.version); err != nil {
			return nil, err
		}
	}
	connection, err := engine.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	lock, err := lockFolder(dir)
	if err != nil {
		return nil, err
	}
	if err := clearUnfinished(ctx, connection, options, dir); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if err := enoughSpace(images.Store.Root(), dir, connection, ctx); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	f, err := openFolder(options.ID, dir, lock)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	builder := &builder{options: options, folder: f, images: images, engine: connection}
	description, err := builder.build(ctx)
	if err != nil {
		err = builder.fail(ctx, err)
	}
	return description, errors.Join(err, f.close())
}

// clearUnfinished refuses a lab that is up and removes one that never came up.
func clearUnfinished(ctx context.Context, e *engine.Engine, options Options, dir string) error {
	entries, _, err := journal.Read(journalPath(dir))
	if err != nil || len(entries) == 0 {
		return err
	}
	if journal.Finished(entries) {
		return &AlreadyUpError{ID: options.ID}
	}
	options.Progress.Say("removing what an earlier process left of the lab %s", options.ID)
	if err := awaitInFlight(ctx, e, entries); err != nil {
		return err
	}
	_, err = remove(ctx, e, options.ID, dir, entries, true)
	return err
}

// InsufficientSpaceError says that a lab would fill a disk.
type InsufficientSpaceError struct {
	Path       string
	Free, Need uint64
}

func (e *InsufficientSpaceError) Error() string {
	const gibibyte = 1 << 30
	return fmt.Sprintf("%.1f GiB are free under %s, and a lab needs %.1f GiB: free space there, or point XDG_CACHE_HOME, XDG_STATE_HOME or the engine's data-root to a larger disk",
		float64(e.Free)/gibibyte, e.Path, float64(e.Need)/gibibyte)
}

func enoughSpace(cacheRoot, stateDir string, e *engine.Engine, ctx context.Context) error {
	facts, err := e.Facts(ctx)
	if err != nil {
		return err
	}
	spaces, err := doctor.SpaceOf(cacheRoot, facts.RootDir, stateDir)
	if err != nil {
		return err
	}
	return checkSpace(spaces, doctor.CacheWarm(cacheRoot))
}

func checkSpace(spaces []doctor.Space, warm bool) error {
	need := doctor.SpaceNeeded(doctor.ForLab, warm)
	for _, space := range spaces {
		if space.Free < need {
			return &InsufficientSpaceError{Path: space.Paths[0], Free: space.Free, Need: need}
		}
	}
	return nil
}

// builder makes one lab.
type builder struct {
	options Options
	folder  *folder
	images  *Images
	engine  *engine.Engine
}

func (b *builder) build(ctx context.Context) (*Description, error) {
	f, id := b.folder, b.options.ID
	facts, err := b.engine.Facts(ctx)
	if err != nil {
		return nil, err
	}
	used, err := b.prepareImages(ctx)
	if err != nil {
		return nil, err
	}
	spec := cluster.Spec{
		Name: clusterName(id), Image: used[string(catalog.Node)].Reference, Version: used[string(catalog.Node)].Version,
		ControlPlanes: b.options.ControlPlanes, Workers: b.options.Workers, APIPort: int32(b.options.APIPort),
		AuditRoot: f.path("audit"), CertsDir: f.path("certs.d"), Machine: machine(facts),
	}
	host := net.JoinHostPort(registryName(id), strconv.Itoa(registryPort))
	made, err := f.prepare(host, registryName(id), spec.AuditDirs())
	if err != nil {
		return nil, err
	}
	if err := b.linkPrograms(ctx, f.path("bin")); err != nil {
		return nil, err
	}
	if err := f.makeNetwork(ctx, b.engine); err != nil {
		return nil, err
	}
	description := &Description{
		ID: id, CreatedAt: time.Now().UTC().Truncate(time.Second), ControlPlanes: spec.ControlPlanes, Workers: spec.Workers,
		ClusterName: spec.Name, Kubeconfig: f.path("kubeconfig"), BinDir: f.path("bin"), Network: networkName(id), Images: used,
		Platform: "linux/" + runtime.GOARCH, NativePlatform: true,
		Engine: EngineDescription{Version: facts.Version, StorageDriver: facts.StorageDriver, CgroupVersion: facts.CgroupVersion,
			CgroupDriver: facts.CgroupDriver, Runtime: facts.DefaultRuntime},
	}
	for _, dir := range spec.AuditDirs() {
		description.AuditLogs = append(description.AuditLogs, filepath.Join(dir, cluster.AuditFile))
	}
	if err := b.start(ctx, description, spec, facts, made); err != nil {
		return nil, err
	}
	return description, b.finish(ctx, description)
}

// linkPrograms puts kubectl of the cluster's version into the lab's folder. Where nodes come from a registry, no
// kubectl was built, and the folder is empty.
func (b *builder) linkPrograms(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder for programs: %w", err)
	}
	if b.images.Source.Name() != source.ModulesName {
		return nil
	}
	assets, err := b.images.Assets(ctx, b.options.Kubernetes)
	if err != nil {
		return err
	}
	return link(filepath.Join(assets, "kubectl"), filepath.Join(dir, "kubectl"))
}

// prepareImages gets the images one after another: each build uses every core by itself.
func (b *builder) prepareImages(ctx context.Context) (map[string]ImageDescription, error) {
	used := map[string]ImageDescription{}
	for _, one := range b.options.images() {
		description, err := b.images.Prepare(ctx, b.engine, one.role, one.version)
		if err != nil {
			return nil, err
		}
		used[string(one.role)] = description
	}
	return used, nil
}

// start starts the registry, the database and the cluster at the same time.
func (b *builder) start(ctx context.Context, description *Description, spec cluster.Spec, facts engine.Facts, made credentials) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		done := b.options.Progress.Step("starting the registry")
		description.Registry, err = b.folder.startRegistry(ctx, description.Images[string(catalog.Registry)].Reference, b.options.RegistryPort)
		done(err)
		return err
	})
	group.Go(func() error {
		done := b.options.Progress.Step("starting the database")
		image := description.Images[string(servers[b.options.Database].role)].Reference
		database, err := b.folder.startDatabase(ctx, b.options.Database, image, made.databasePassword, b.options.DatabasePort)
		description.Databases = []DatabaseDescription{database}
		done(err)
		return err
	})
	group.Go(func() error {
		done := b.options.Progress.Step("starting Kubernetes %s with %d control planes and %d workers", spec.Version, spec.ControlPlanes, spec.Workers)
		err := b.startCluster(ctx, spec, facts)
		done(err)
		return err
	})
	return group.Wait()
}

func (b *builder) startCluster(ctx context.Context, spec cluster.Spec, facts engine.Facts) error {
	if err := b.folder.journal.Append(journal.Intended, journal.Cluster, spec.Name, ""); err != nil {
		return err
	}
	log, err := os.Create(b.folder.path("logs", "kind.log"))
	if err != nil {
		return fmt.Errorf("begin kind's log: %w", err)
	}
	defer func() { _ = log.Close() }() // the lab does not depend on what kind says
	// kind takes no context: where the lab is given up, the commands that kind waits for are ended instead.
	created := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { endOrphansUntil(created, networkName(b.options.ID)) })
	defer func() { close(created); stop() }()
	err = cluster.Create(ctx, spec, cluster.Place{
		Network: networkName(b.options.ID), Kubeconfig: b.folder.path("kubeconfig"), FuseOverlay: facts.FuseOverlay(), Log: log,
	})
	if err != nil {
		return err
	}
	return b.folder.journal.Append(journal.Made, journal.Cluster, spec.Name, "")
}

func (b *builder) finish(ctx context.Context, description *Description) error {
	client, err := cluster.Client(description.Kubeconfig)
	if err != nil {
		return err
	}
	if description.ClusterUID, err = cluster.UID(ctx, client); err != nil {
		return err
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("ask the API server for its version: %w", err)
	}
	description.KubernetesVersion = version.GitVersion
	if err := description.Save(b.folder.path("lab.json")); err != nil {
		return err
	}
	return b.folder.journal.Append(journal.Ready, journal.Lab, b.options.ID, "")
}

// fail keeps the logs of a lab that did not come up and removes the rest of it.
func (b *builder) fail(ctx context.Context, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
	defer cancel()
	// Each of the steps below is worth taking even where the one before it failed.
	logs := b.folder.path("logs")
	found := problems{cause,
		exportLogs(ctx, b.engine, b.options.ID, logs),
		b.folder.journal.Append(journal.Failed, journal.Lab, b.options.ID, cause.Error())}
	if b.options.Retain {
		return fmt.Errorf("%w (everything is kept; logs are in %s)", found, logs)
	}
	entries, _, err := journal.Read(journalPath(b.folder.dir))
	removal, errRemove := remove(ctx, b.engine, b.options.ID, b.folder.dir, entries, true)
	found = append(found, err, errRemove)
	if errRemove == nil {
		_ = os.Remove(b.folder.dir + ".lock") // an empty file; the next lab makes it again
	}
	return fmt.Errorf("%w (the lab was removed; its logs are in %s)", found, removal.KeptLogs)
}

func machine(facts engine.Facts) cluster.Machine {
	return cluster.Machine{CgroupV1: facts.CgroupVersion != "2", LacksSysResource: doctor.LacksSysResource()}
}
