package llm

// pipelined is a step of a copy whose batch passes the stages in micro-batches.
type pipelined struct {
	micro     int64
	operators []Operator // of one GPU of the widest stage, for all micro-batches
	computeUS float64
	stepUS    float64 // with the collectives of micro-batches, without what is once a step
	bubbleUS  float64 // of stepUS: the widest stage waits for the others
}

// pipeline splits a copy's batch into the micro-batches that take least time: few leave
// stages idle, many read the weights often.
func (r *Run) pipeline() (*pipelined, error) {
	var best *pipelined
	for _, micro := range r.splits() {
		p, err := r.split(micro)
		if err != nil {
			return nil, err
		}
		if best == nil || p.stepUS < best.stepUS {
			best = p
		}
	}
	return best, nil
}

// splits are the numbers of micro-batches that are tried: divisors of a copy's sequences
// that are small or powers of two, and all sequences one by one.
func (r *Run) splits() []int64 {
	const small = 64
	all, sequences := []int64{1}, r.Batch/r.DP
	if r.PP == 1 {
		return all
	}
	for k := int64(2); k < sequences; {
		if sequences%k == 0 {
			all = append(all, k)
		}
		if k < small {
			k++
		} else {
			k *= 2
		}
	}
	if sequences > 1 {
		all = append(all, sequences)
	}
	return all
}

// split is a step in a number of micro-batches. Each passes all stages, the widest of
// which has all of them one after another. When a step of decoding ends for the first
// micro-batch its next begins, so that all stages work if there are enough; a prefill
// and the two directions of training fill the pipeline and empty it once (GPipe, arXiv
// 1811.06965; 1F1B has the same bubble).
func (r *Run) split(micro int64) (*pipelined, error) {
	stage := *r
	stage.Batch = r.Batch / micro
	whole := stage
	whole.PP = 1
	p := &pipelined{micro: micro}
	var err error
	if p.operators, p.computeUS, err = stage.operators(micro); err != nil {
		return nil, err
	}
	_, latency, err := whole.operators(1)
	if err != nil {
		return nil, err
	}
	sums, handed := often(stage.collectives())
	busy := p.computeUS + float64(micro)*(sums+handed)
	sums, _ = often(whole.collectives())
	latency += sums + float64(r.PP-1)*handed
	p.stepUS = max(latency, busy)
	if r.Phase != Decode {
		p.stepUS = max(latency+busy*float64(micro-1)/float64(micro), busy)
	}
	p.bubbleUS = p.stepUS - busy
	return p, nil
}

// often are the microseconds of what goes with every micro-batch: sums among the GPUs of
// a stage, and what is handed to the next stage.
func often(all []Collective) (sums, handed float64) {
	for _, c := range all {
		switch {
		case c.once:
		case c.Name == handing:
			handed += c.US
		default:
			sums += c.US
		}
	}
	return sums, handed
}
