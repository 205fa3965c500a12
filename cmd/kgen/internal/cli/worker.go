package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kgen-dev/kgen/codegen/target"
	"github.com/kgen-dev/kgen/tune"
	"github.com/kgen-dev/kgen/tune/queue"
	"github.com/kgen-dev/kgen/tune/trial"
)

// workerFlags are those of kgen worker.
type workerFlags struct {
	gpu    string
	device choice
	jobs   int
	idle   time.Duration
	access accessFlags
}

func (a *app) workerCommand() *cobra.Command {
	f := workerFlags{device: devices()}
	c := &cobra.Command{
		Use:   "worker URL",
		Short: "Try configurations for kgen tune on another machine",
		Long: `Try configurations for kgen tune --serve, or --workers, on this or another machine: take
compilations and runs from the queue on the server at URL, one tuning after the other,
until Ctrl-C, which gives back what is under way: the exit code is then 0. A server that
is not there yet is waited for; with --idle for so long alone, and then the exit code is 1.

As many jobs are done at a time as there are cores; with --device cuda the runs that
this machine's GPU times, one at a time, beside them. A worker of another version, or
with another compiler or driver than the tuner wants, is refused, with exit code 2. See
docs/workers.md.`,
		Example: `  kgen worker --gpu h100 --token-file token nats://tuner:4222
  kgen worker --gpu h100 --device cuda --tls-ca ca.pem --idle 10m tls://tuner:4222`,
		Args: positional("URL"),
		RunE: func(c *cobra.Command, args []string) error { return a.work(c.Context(), &f, args[0]) },
	}
	c.Flags().SortFlags = false
	c.Flags().StringVar(&f.gpu, "gpu", "", gpuUsage)
	mustComplete(c, "gpu", completeGPUFlag)
	choiceFlag(c, &f.device, "device", "what runs kernels: the virtual machine, or this machine's GPU")
	c.Flags().IntVar(&f.jobs, "jobs", runtime.GOMAXPROCS(0), "`N` jobs at a time, beside those of a GPU")
	c.Flags().DurationVar(&f.idle, "idle", 0, "end after so long without anything to do, such as 10m (default never)")
	f.access.declare(c)
	return c
}

func (a *app) work(ctx context.Context, f *workerFlags, url string) error {
	if f.jobs < 1 || f.jobs > mostJobs {
		return usagef("--jobs %d: want 1 to %d", f.jobs, mostJobs)
	}
	if f.idle < 0 {
		return usagef("--idle %v: want a time such as 10m, or 0 for never", f.idle)
	}
	gpu, err := lookupGPU(f.gpu)
	if err != nil {
		return err
	}
	access, err := f.access.access()
	if err != nil {
		return err
	}
	w := queue.Worker{Name: workerName(), Jobs: f.jobs, Idle: f.idle, Log: a.log}
	if w.Identity, err = identityOf(ctx, gpu, f.device.value); err != nil {
		return err
	}
	if f.device.value == "cuda" {
		unlock, err := lockGPU()
		if err != nil {
			return err
		}
		defer unlock()
		if w.Identity.Driver, err = driverOf(gpu); err != nil {
			return err
		}
	}
	w.Open = func(dir string, work queue.Work) (queue.Triers, error) { return a.triers(f, gpu, dir, &work) }
	conn, err := queue.ConnectPatiently(ctx, url, access, f.idle, a.log)
	if errors.Is(err, context.Canceled) { // which is how a worker is ended, whatever it does
		a.log.Info("the worker ends", "compiled", 0, "run", 0)
		return nil
	}
	if err != nil {
		return queueError(err)
	}
	defer conn.Close()
	a.log.Info("the worker is ready", "name", w.Name, "gpu", gpu.ID, "device", f.device.value, "jobs", f.jobs)
	err = w.Run(ctx, conn)
	compiled, ran := w.Done()
	a.log.Info("the worker ends", "compiled", compiled, "run", ran)
	return queueError(err)
}

// mostJobs bounds how many children a worker has.
const mostJobs = 1024

// workerName tells a worker from all others.
func workerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "worker"
	}
	host, _, _ = strings.Cut(host, ".")
	return fmt.Sprintf("%s-%d-%04x", fileName(host), os.Getpid(), rand.N(1<<16))
}

// lockGPU holds this machine's GPU, the first that is visible, for one worker alone: two
// would time beside each other.
func lockGPU() (unlock func(), err error) {
	visible, _, _ := strings.Cut(os.Getenv("CUDA_VISIBLE_DEVICES"), ",")
	path := filepath.Join(os.TempDir(), fmt.Sprintf("kgen-gpu-%s.lock", fileName(visible)))
	if unlock, err = queue.Lock(path); err != nil {
		return nil, usagef("--device cuda: the GPU: %w: want one worker for each, told apart by CUDA_VISIBLE_DEVICES", err)
	}
	return unlock, nil
}

// triers are the child processes that do what a tuning asks for.
func (a *app) triers(f *workerFlags, gpu *target.GPU, dir string, work *queue.Work) (queue.Triers, error) {
	t := tuneFlags{seed: work.Seed, space: work.Space}
	what := []string{"--space", filepath.Join(dir, work.Space), "--gpu", f.gpu}
	if work.Family != "" {
		family, err := kernelFamily(work.Family)
		if err != nil {
			return queue.Triers{}, err
		}
		if _, err := family.Problem(work.Flags, gpu); err != nil { // and no flags but a family's
			return queue.Triers{}, err
		}
		what = append(familyWords(family.Name, work.Flags), "--gpu", f.gpu)
	} else if !filepath.IsLocal(work.Space) {
		return queue.Triers{}, fmt.Errorf("a description called %q: want a file of the tuning's", work.Space)
	}
	return a.pools(f, &t, what)
}

// pools are the processes for the cores, which leave the GPU alone, and the one for the
// GPU.
func (a *app) pools(f *workerFlags, t *tuneFlags, what []string) (out queue.Triers, err error) {
	cores := &trial.Pool{Workers: f.jobs, Log: a.log}
	if t.space == "" {
		cores.Deadlines = tune.Deadlines()
	}
	if cores.Command, err = t.childCommand("vm", what...); err != nil {
		return out, err
	}
	out.Cores = cores
	if f.device.value != "cuda" {
		return out, nil
	}
	timer := &trial.Pool{Workers: 1, OneDevice: true, Deadlines: cores.Deadlines, Log: a.log}
	if timer.Command, err = t.childCommand("cuda", what...); err != nil {
		return out, err
	}
	out.Timer = timer
	return out, nil
}
