package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/tune"
	"github.com/kgen-dev/kgen/tune/queue"
	"github.com/kgen-dev/kgen/tune/store"
	"github.com/kgen-dev/kgen/tune/trial"
)

// fleetFlags say who tries the configurations instead of this process's children.
type fleetFlags struct {
	serve   string // address
	workers string // URL
	access  accessFlags
}

func (f *fleetFlags) declare(c *cobra.Command) {
	filledFlag(c, &f.serve, "serve", "", "have the work done by kgen worker, which finds it at `ADDR` of this machine, such as :4222")
	filledFlag(c, &f.workers, "workers", "", "the same over a NATS server with JetStream that is there, at `URL`")
	f.access.declare(c)
}

// remote tells whether workers do the work.
func (f *fleetFlags) remote() bool { return f.serve != "" || f.workers != "" }

// checkWorkers refuses flags that do not go with workers, or without.
func (f *tuneFlags) checkWorkers() error {
	switch {
	case f.fleet.serve != "" && f.fleet.workers != "":
		return usagef("--serve and --workers: want one of both")
	case f.fleet.remote() && f.compile.given():
		return usagef("-I and -D do not reach workers: want what is included in the description's folder, and \"flags\" in it")
	case f.parallel < 1 || f.parallel > mostJobs:
		return usagef("--parallel %d: want 1 to %d", f.parallel, mostJobs)
	}
	return nil
}

// check finds out whether workers can be reached, before anything is made.
func (f *fleetFlags) check() error {
	if !f.remote() {
		return nil
	}
	access, err := f.access.access()
	if err != nil {
		return err
	}
	if f.serve != "" {
		o := queue.ServerOptions{Addr: f.serve, Access: access}
		if err := o.Check(); err != nil {
			return queueError(fmt.Errorf("--serve %s: %w", f.serve, err))
		}
		return nil
	}
	conn, err := queue.Connect(f.workers, access)
	if err != nil {
		return queueError(fmt.Errorf("--workers: %w", err))
	}
	conn.Close()
	return nil
}

// tuningStore opens the store to tune into, unless workers are to do the work and cannot.
func (a *app) tuningStore(f *tuneFlags) (*store.Store, error) {
	if err := f.fleet.check(); err != nil {
		return nil, err
	}
	return a.openStore(f.store, store.Open)
}

// trials are what tries configurations: this process's children, or workers.
type trials struct {
	bench  trial.Bench
	slots  func() int  // how many the bench compiles at a time; nil: as many as there are cores
	timer  trial.Bench // of a family, on a device that measures
	driver string      // that device's name
	remote *queue.Bench
	close  func()
}

// workers are those that had a part in it; none of children.
func (t *trials) workers() []queue.Standing {
	if t.remote == nil {
		return nil
	}
	return t.remote.Workers()
}

// spaceTrials are those of a described kernel.
func (a *app) spaceTrials(ctx context.Context, f *tuneFlags, gpuName string, k *trial.Kernel, s *store.Store, p *progress) (t *trials, err error) {
	if f.fleet.remote() {
		o, err := spaceWork(ctx, f, k)
		if err != nil {
			return nil, err
		}
		return a.remoteTrials(ctx, &f.fleet, s, p, o)
	}
	t = &trials{}
	if f.device.value == "cuda" {
		if t.driver, err = driverOf(k.Spec.GPU); err != nil {
			return nil, err
		}
	}
	pool, err := a.spacePool(f, gpuName)
	if err != nil {
		return nil, err
	}
	t.bench, t.close = pool, pool.Close
	return t, nil
}

// familyTrials are those of a family's problem.
func (a *app) familyTrials(ctx context.Context, f *tuneFlags, j *job, s *store.Store, p *progress) (t *trials, err error) {
	if f.fleet.remote() {
		o, err := familyWork(ctx, f, j)
		if err != nil {
			return nil, err
		}
		return a.remoteTrials(ctx, &f.fleet, s, p, o)
	}
	pool, err := a.familyPool(f, j, "vm")
	if err != nil {
		return nil, err
	}
	t = &trials{bench: pool, close: pool.Close}
	if f.device.value != "cuda" {
		return t, nil
	}
	if t.driver, err = driverOf(j.gpu); err != nil {
		return nil, err
	}
	timer, err := a.familyPool(f, j, "cuda")
	if err != nil {
		return nil, err
	}
	t.timer, t.close = timer, func() {
		timer.Close()
		pool.Close()
	}
	return t, nil
}

// familyWork is what workers are told of a family's problem.
func familyWork(ctx context.Context, f *tuneFlags, j *job) (o queue.Options, err error) {
	o = queue.Options{
		Work:  queue.Work{Family: j.family.Name, Flags: j.given, Seed: f.seed},
		Files: func(w io.Writer) error { return queue.Pack(w, "", nil, nil) },
	}
	o.Identity, err = identityOf(ctx, j.gpu, f.device.value)
	return o, err
}

// spaceWork is what workers are told of a described kernel.
func spaceWork(ctx context.Context, f *tuneFlags, k *trial.Kernel) (o queue.Options, err error) {
	names, err := k.Files()
	if err != nil {
		return o, usagef("--space %s: %w", f.space, err)
	}
	o = queue.Options{
		Work: queue.Work{Space: spaceFile, Seed: f.seed}, Times: f.device.value == "cuda",
		Files: func(w io.Writer) error {
			if err := queue.Pack(w, k.Spec.Dir, names, map[string][]byte{spaceFile: k.Spec.Text}); err != nil {
				return usagef("--space %s: %w", f.space, err)
			}
			return nil
		},
	}
	o.Identity, err = identityOf(ctx, k.Spec.GPU, f.device.value)
	return o, err
}

// spaceFile is what workers call a description.
const spaceFile = "kgen-space.json"

// remoteTrials puts a tuning on a queue of its own.
func (a *app) remoteTrials(ctx context.Context, f *fleetFlags, s *store.Store, p *progress, o queue.Options) (*trials, error) {
	conn, end, err := a.openQueue(f, s, o, p.log)
	if err != nil {
		return nil, err
	}
	t, err := a.trialsOn(ctx, conn, s, p, o)
	if err != nil {
		end()
		return nil, err
	}
	alone := t.close
	t.close = func() {
		alone()
		end()
	}
	return t, nil
}

// trialsOn puts a tuning on a server. Where a device measures it waits for the first
// worker, whose name the device has.
func (a *app) trialsOn(ctx context.Context, conn *queue.Conn, s *store.Store, p *progress, o queue.Options) (*trials, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	o.Log, o.Name = p.log, []string{host, s.Path()}
	t := &trials{}
	if t.remote, err = queue.Open(ctx, conn, o); err != nil {
		return nil, queueError(err)
	}
	t.bench, t.slots, t.close = t.remote, t.remote.Slots, t.remote.Close
	p.workers = t.workers
	if o.Identity.Device == "cuda" {
		t.timer = t.remote.Timer()
		if t.driver, err = t.remote.Driver(ctx); err != nil {
			t.close()
			return nil, err
		}
	}
	return t, nil
}

// openQueue connects to a server, or starts one.
func (a *app) openQueue(f *fleetFlags, s *store.Store, o queue.Options, log *slog.Logger) (conn *queue.Conn, end func(), err error) {
	access, err := f.access.access()
	if err != nil {
		return nil, nil, err
	}
	if f.workers != "" {
		if conn, err = queue.Connect(f.workers, access); err != nil {
			return nil, nil, queueError(fmt.Errorf("--workers: %w", err))
		}
		return conn, conn.Close, nil
	}
	server, err := queue.Serve(queue.ServerOptions{Addr: f.serve, Dir: queueDir(s, o), Access: access, Log: log})
	if err != nil {
		return nil, nil, queueError(fmt.Errorf("--serve %s: %w", f.serve, err))
	}
	down := func() {
		if err := server.Close(); err != nil {
			a.log.Warn("the queue's folder stays", "error", err)
		}
	}
	if conn, err = server.Connect(); err != nil {
		down()
		return nil, nil, err
	}
	a.log.Info("workers find the tuning", "at", server.URL())
	return conn, func() { conn.Close(); down() }, nil
}

// queueDir is a tuning's own folder for its server, beside the store: what a killed one
// left is there again.
func queueDir(s *store.Store, o queue.Options) string {
	h := sha256.Sum256([]byte(fmt.Sprint(s.Path(), o.Identity, o.Work)))
	return filepath.Join(filepath.Dir(s.Path()), "queue", hex.EncodeToString(h[:8]))
}

// identityOf is what a tuner and its workers agree in.
func identityOf(ctx context.Context, gpu *target.GPU, device string) (queue.Identity, error) {
	compiler, err := tune.FindToolchain().Identity(ctx, gpu)
	return queue.Identity{Kgen: codeOf(readBuildInfo(), device), Compiler: compiler, GPU: gpu.ID, Device: device}, err
}

// codeOf tells programs apart whose code differs. Where no revision does, on the virtual
// machine the program's file does; workers with a GPU are built otherwise than their tuner.
func codeOf(b buildInfo, device string) string {
	code := b.Version
	if b.Revision != "" {
		code += " " + b.Revision
	}
	if (b.Revision == "" && b.Version == develVersion || b.Modified) && device == "vm" {
		code += " build " + buildDigest()
	}
	return code
}

// familyWords are a family with its flags as arguments of kgen tune.
func familyWords(family string, flags map[string]string) []string {
	words := []string{family}
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		words = append(words, "--"+name+"="+flags[name])
	}
	return words
}
