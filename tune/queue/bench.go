package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kgen-dev/kgen/bench"
	"github.com/kgen-dev/kgen/tune/store"
	"github.com/kgen-dev/kgen/tune/trial"
)

// Options are a tuner's.
type Options struct {
	Identity Identity // of the workers that it takes; without a Driver the first one's counts
	Work     Work
	Times    bool // Run is for the workers' GPUs, as Timer's always is
	// Files writes what workers need, by Pack.
	Files func(io.Writer) error
	// Name are texts that tell this tuning from all others: started again with the same
	// ones it goes on with what is on the server.
	Name    []string
	AckWait time.Duration // 0: DefaultAckWait
	Log     *slog.Logger
}

// Bench is a tuner's end: a trial.Bench and trial.Keeper whose work is done elsewhere.
type Bench struct {
	Options
	names
	conn     *nats.Conn
	js       jetstream.JetStream
	roster   *roster
	subs     []*nats.Subscription
	consumed jetstream.ConsumeContext
	ended    context.Context
	end      context.CancelCauseFunc
	watching sync.WaitGroup

	behind   uint64        // results that were there before and have not come yet
	caughtUp chan struct{} // closed when they have

	mu      sync.Mutex
	waiting map[string]chan *answer // by job
	ready   map[string]*answer      // for which nobody waits yet
	taken   map[string]bool         // jobs whose result was
	asked   map[string]int          // how often the same was
	held    map[string][]*answer    // results that are not recorded, by point
	codes   map[string]*trial.Code  // by point
	recent  []string                // points with a code, the oldest first
}

// answer is a result that came, and its message.
type answer struct {
	result
	message jetstream.Msg
}

// Bounds of what a tuner keeps.
const (
	mostCodes = 1024
	mostReady = 100_000
)

// Open puts a tuning on a server. Errors may wrap ErrUnderWay.
func Open(ctx context.Context, conn *nats.Conn, o Options) (*Bench, error) {
	if o.AckWait == 0 {
		o.AckWait = DefaultAckWait
	}
	o.Identity.Schema = Schema
	var files bytes.Buffer
	if err := o.Files(&files); err != nil {
		return nil, err
	}
	b := &Bench{
		Options: o, conn: conn, roster: newRoster(o.Identity, o.Log),
		waiting: map[string]chan *answer{}, ready: map[string]*answer{}, taken: map[string]bool{}, asked: map[string]int{},
		held: map[string][]*answer{}, codes: map[string]*trial.Code{}, caughtUp: make(chan struct{}),
	}
	b.tune = shortName(append([]string{fmt.Sprint(o.Identity), fmt.Sprint(o.Work), files.String()}, o.Name...)...)
	var err error
	if b.js, err = jetstream.New(conn); err != nil {
		return nil, err
	}
	asking, cancel := context.WithTimeout(ctx, 2*time.Second)
	err = b.alone(asking)
	cancel()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	b.ended, b.end = context.WithCancelCause(context.Background())
	if err := b.prepare(ctx, files.Bytes()); err != nil {
		b.Close()
		return nil, fmt.Errorf("queue on the server: %w", err)
	}
	b.watching.Go(b.watch)
	return b, nil
}

// alone finds out whether another process does the same on this server.
func (b *Bench) alone(ctx context.Context) error {
	_, err := b.conn.RequestWithContext(ctx, b.presence(), nil)
	switch {
	case err == nil:
		return ErrUnderWay
	case errors.Is(err, nats.ErrNoResponders), isTimeout(err):
		return nil // a timeout: the server has not noticed yet that it died
	}
	return err
}

func (b *Bench) prepare(ctx context.Context, files []byte) error {
	s, err := b.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: b.stream(), Subjects: []string{b.all()}, Storage: jetstream.FileStorage, MaxAge: keptFor,
		Retention: jetstream.WorkQueuePolicy,
		// One of each job and each result: what is there is not put there again.
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true,
	})
	if errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) || errors.Is(err, nats.ErrNoResponders) {
		return ErrNoJetStream
	}
	if err != nil {
		return err
	}
	if err := b.store(ctx, files); err != nil {
		return err
	}
	for _, l := range lanes(b.Identity.Device) {
		c := jetstream.ConsumerConfig{Durable: l.name, AckPolicy: jetstream.AckExplicitPolicy, AckWait: b.AckWait, MaxAckPending: -1}
		for _, do := range l.does {
			c.FilterSubjects = append(c.FilterSubjects, b.jobs(do))
		}
		if _, err := s.CreateOrUpdateConsumer(ctx, c); err != nil {
			return err
		}
	}
	// A new consumer gets what a killed tuner's had and did not acknowledge.
	if err := s.DeleteConsumer(ctx, doResult); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return err
	}
	c, err := s.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: doResult, AckPolicy: jetstream.AckExplicitPolicy, AckWait: keptFor, MaxAckPending: -1, FilterSubject: b.jobs(doResult),
	})
	if err != nil {
		return err
	}
	b.behind = c.CachedInfo().NumPending
	if b.behind == 0 {
		close(b.caughtUp)
	}
	if b.consumed, err = c.Consume(b.receive); err != nil {
		return err
	}
	select { // so that nothing that was done is asked for again
	case <-b.caughtUp:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return b.listen()
}

// store puts the files of the work on the server, unless they are there.
func (b *Bench) store(ctx context.Context, files []byte) error {
	o, err := b.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: b.files(), TTL: keptFor})
	if err != nil {
		return err
	}
	_, err = o.PutBytes(ctx, filesName, files)
	return err
}

// filesName is that of the files of the work.
const filesName = "files"

func (b *Bench) listen() error {
	for subject, f := range map[string]nats.MsgHandler{
		greetings:    b.greeted,
		b.presence(): func(m *nats.Msg) { _ = m.Respond(nil) }, // who asked asks again
	} {
		s, err := b.conn.Subscribe(subject, f)
		if err != nil {
			return err
		}
		b.subs = append(b.subs, s)
	}
	return b.conn.Flush()
}

// greeted answers a worker that may be for this tuning.
func (b *Bench) greeted(m *nats.Msg) {
	var g greeting
	if err := decode(m.Data, &g); err != nil || !validToken(g.Worker) || len(g.Worker) > 200 {
		b.Log.Debug("a greeting that is none", "error", err)
		return
	}
	if g.GPU != b.Identity.GPU || g.Device != b.Identity.Device || g.Tune != "" && g.Tune != b.tune {
		return // another tuner's
	}
	w := welcome{Refused: b.roster.greet(&g)}
	if m.Reply == "" {
		return // it leaves
	}
	if w.Refused == "" {
		w = welcome{Tune: b.tune, AckWait: int64(b.AckWait), Pinned: b.roster.isPinned(g.Worker), Work: b.Work}
	}
	data, err := encode(&w)
	if err == nil {
		err = m.Respond(data)
	}
	if err != nil {
		b.Log.Debug("a greeting without an answer", "worker", g.Worker, "error", err)
	}
}

// watch says who is lost, and ends all when the queue is gone from the server.
func (b *Bench) watch() {
	known := map[string]State{}
	for n := 0; ; n++ {
		select {
		case <-time.After(greetEvery):
		case <-b.ended.Done():
			return
		}
		there := b.roster.missing(known)
		if n%30 == 5 && there == 0 {
			b.Log.Info("waiting for workers", "gpu", b.Identity.GPU, "device", b.Identity.Device)
		}
		if b.conn.IsClosed() {
			b.end(fmt.Errorf("the server: %w", b.conn.LastError()))
			return
		}
		if n%10 == 9 {
			ctx, cancel := context.WithTimeout(b.ended, answerWait)
			if _, err := b.js.Stream(ctx, b.stream()); isGone(err) {
				b.end(errors.New("the queue is gone from the server"))
			}
			cancel()
		}
	}
}

// receive takes a result from the queue.
func (b *Bench) receive(m jetstream.Msg) {
	id := lastToken(m.Subject())
	a := &answer{message: m}
	if err := decode(m.Data(), &a.result); err != nil {
		b.Log.Warn("a result that cannot be read", "error", err)
		a.result = result{Error: fmt.Sprintf("a result that cannot be read: %v", err)}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.waiting[id]
	switch {
	case b.taken[id], c == nil && len(b.ready) >= mostReady:
		_ = m.Ack() // a job that was done twice
	case c != nil:
		delete(b.waiting, id)
		b.taken[id] = true
		c <- a
	default:
		b.ready[id] = a
	}
	if b.behind > 0 {
		if b.behind--; b.behind == 0 {
			close(b.caughtUp)
		}
	}
}

// key names a thing to do for a point.
func key(do string, point []int, samples int) string {
	return shortName(do, fmt.Sprint(point), fmt.Sprint(samples))
}

// ask has a job done. Asked for again, the same is another job.
func (b *Bench) ask(ctx context.Context, do string, j job) (*answer, error) {
	base := key(do, j.Point, j.Samples)
	b.mu.Lock()
	id := fmt.Sprintf("%s-%d", base, b.asked[base])
	b.asked[base]++
	if a := b.ready[id]; a != nil {
		delete(b.ready, id)
		b.taken[id] = true
		b.mu.Unlock()
		return a, nil
	}
	c := make(chan *answer, 1)
	b.waiting[id] = c
	b.mu.Unlock()
	if err := b.publish(ctx, do, id, j); err != nil {
		return nil, err
	}
	select {
	case a := <-c:
		return a, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-b.ended.Done():
		return nil, context.Cause(b.ended)
	}
}

// publish puts a job on the queue, for as long as it takes a lost server to be there
// again.
func (b *Bench) publish(ctx context.Context, do, id string, j job) error {
	data, err := encodeJob(j, b.conn.MaxPayload())
	if err != nil {
		return err
	}
	for {
		err := put(ctx, b.js, b.job(do, id), data)
		var api *jetstream.APIError
		switch {
		case err == nil, ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &api):
			return fmt.Errorf("the server does not take a job: %w", err)
		}
		b.Log.Debug("a job is not on the queue yet", "error", err)
		select {
		case <-time.After(retryWait):
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-b.ended.Done():
			return context.Cause(b.ended)
		}
	}
}

// put publishes a message, unless it is there.
func put(ctx context.Context, js jetstream.JetStream, subject string, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, attemptWait)
	defer cancel()
	_, err := js.Publish(ctx, subject, data)
	if isDuplicate(err) {
		return nil
	}
	return err
}

// Compile implements trial.Bench.
func (b *Bench) Compile(ctx context.Context, point []int) (trial.Built, error) {
	a, err := b.ask(ctx, doCompile, job{Point: point})
	if err != nil {
		return trial.Built{}, err
	}
	if err := b.take(doCompile, point, a, true); err != nil {
		return trial.Built{}, err
	}
	built := a.Built
	why := ""
	if !knownOutcome(built.Outcome, true) {
		why = fmt.Sprintf("outcome %q", clip(string(built.Outcome), 50))
	} else if built.Predicted != nil {
		why = unbelievable(built.Predicted, doCompile)
	}
	if why != "" {
		return trial.Built{Program: built.Program, Outcome: store.Compile, Error: fmt.Sprintf("worker %s: %s", a.Worker, why)}, nil
	}
	if a.Code != nil {
		b.keep(fmt.Sprint(point), a.Code)
	}
	return built, nil
}

// Run implements trial.Bench.
func (b *Bench) Run(ctx context.Context, point []int, samples int) (trial.Ran, error) {
	do := doCheck
	if b.Times {
		do = doTime
	}
	return b.run(ctx, do, point, samples)
}

// Timer is the same with runs that are for the workers' GPUs.
func (b *Bench) Timer() *Timer { return &Timer{b} }

// Timer is a trial.Bench and trial.Keeper.
type Timer struct{ *Bench }

// Run implements trial.Bench.
func (t *Timer) Run(ctx context.Context, point []int, samples int) (trial.Ran, error) {
	return t.run(ctx, doTime, point, samples)
}

// Pin implements trial.Pinner: from now on one worker's GPU runs what is timed, and if it
// is lost another's.
func (b *Bench) Pin() {
	b.roster.mu.Lock()
	defer b.roster.mu.Unlock()
	b.roster.pin = true
}

func (b *Bench) run(ctx context.Context, do string, point []int, samples int) (trial.Ran, error) {
	if do == doTime && b.roster.pins() {
		do = doFinal
	}
	b.mu.Lock()
	code := b.codes[fmt.Sprint(point)]
	b.mu.Unlock()
	a, err := b.ask(ctx, do, job{Point: point, Samples: samples, Code: code})
	if err != nil {
		return trial.Ran{}, err
	}
	// A time that is taken once is recorded, and whatever else follows from the point. Other
	// times are looks at the device, of no use later.
	if err := b.take(do, point, a, !onGPU(do) || samples == 1); err != nil {
		return trial.Ran{}, err
	}
	if why := unbelievable(&a.Ran, do); why != "" {
		return trial.Ran{Outcome: store.Runtime, Error: fmt.Sprintf("worker %s: %s", a.Worker, why)}, nil
	}
	return a.Ran, nil
}

// take takes a result. One that will be recorded stays on the queue until it is.
func (b *Bench) take(do string, point []int, a *answer, recorded bool) error {
	if a.Error != "" {
		_ = a.message.Ack()
		return fmt.Errorf("worker %s: %s", a.Worker, a.Error)
	}
	b.roster.count(a.Worker, do)
	if !recorded {
		return a.message.Ack()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	k := fmt.Sprint(point)
	b.held[k] = append(b.held[k], a)
	return nil
}

// unbelievable says why what a worker says of a run cannot be; "" if it can.
func unbelievable(r *trial.Ran, do string) string {
	if !knownOutcome(r.Outcome, false) {
		return fmt.Sprintf("outcome %q", clip(string(r.Outcome), 50))
	}
	if !r.Outcome.Timed() {
		return ""
	}
	if measured := r.Provenance == bench.Measured; measured != onGPU(do) {
		return fmt.Sprintf("a time that is %s, of a job to %s", r.Provenance, do)
	}
	for _, us := range append(slices.Clone(r.Samples), r.TimeUS, r.Seconds) {
		if math.IsNaN(us) || math.IsInf(us, 0) || us < 0 {
			return fmt.Sprintf("a time of %v us", us)
		}
	}
	return ""
}

// knownOutcome tells whether an outcome is one; "" is that of what can be run.
func knownOutcome(o store.Outcome, built bool) bool {
	if o == "" {
		return built
	}
	return slices.Contains(store.Outcomes(), o)
}

func (b *Bench) keep(point string, c *trial.Code) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.codes[point] == nil {
		b.recent = append(b.recent, point)
	}
	b.codes[point] = c
	if len(b.recent) > mostCodes {
		delete(b.codes, b.recent[0])
		b.recent = b.recent[1:]
	}
}

// Recorded implements trial.Keeper: the results of a point leave the queue.
func (b *Bench) Recorded(point []int) {
	k := fmt.Sprint(point)
	b.mu.Lock()
	gone := b.held[k]
	delete(b.held, k)
	for _, id := range []string{
		key(doCompile, point, 0), key(doCheck, point, 0), key(doCheck, point, 1), key(doCheck, point, trial.Again),
		key(doTime, point, 1), key(doFinal, point, 1),
	} {
		id += "-0"
		if a := b.ready[id]; a != nil { // of a tuner that was killed just after it recorded
			delete(b.ready, id)
			gone = append(gone, a)
		}
	}
	b.mu.Unlock()
	for _, a := range gone {
		if err := a.message.Ack(); err != nil {
			b.Log.Debug("a result stays on the queue", "error", err)
		}
	}
}

// Driver waits for the first worker and returns its device's name, which all have.
func (b *Bench) Driver(ctx context.Context) (string, error) {
	select {
	case <-b.roster.met:
		return b.roster.driver(), nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case <-b.ended.Done():
		return "", context.Cause(b.ended)
	}
}

// Slots is how many jobs there should be at a time for the cores of the workers that are
// there: as many as they do, and some that wait, so that no worker waits for the tuner.
func (b *Bench) Slots() int {
	n := b.roster.slots()
	return min(n+n/4+1, mostReady)
}

// Workers are those that came, by name.
func (b *Bench) Workers() []Standing { return b.roster.standings() }

// Close takes the tuning off the server.
func (b *Bench) Close() {
	b.end(errors.New("the tuning has ended"))
	b.watching.Wait()
	for _, s := range b.subs {
		_ = s.Unsubscribe() // the connection may be gone
	}
	if b.consumed != nil {
		b.consumed.Stop()
		<-b.consumed.Closed()
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerWait)
	defer cancel()
	err := b.js.DeleteStream(ctx, b.stream())
	if err == nil {
		err = b.js.DeleteObjectStore(ctx, b.files())
	}
	if err != nil && !isGone(err) && !b.conn.IsClosed() {
		b.Log.Debug("the queue stays on the server", "error", err)
	}
}
