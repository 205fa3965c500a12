package queue

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"

	"github.com/kgen-dev/kgen/tune/trial"
)

// greeting is what a worker says of itself, again and again.
type greeting struct {
	Identity
	Worker string `json:"worker"`
	Tune   string `json:"tune,omitempty"` // that it works for
	Busy   int    `json:"busy"`           // jobs under way
	Jobs   int    `json:"jobs"`           // that it does at a time
	Leaves bool   `json:"leaves,omitempty"`
}

// welcome is a tuner's answer.
type welcome struct {
	Refused string `json:"refused,omitempty"`
	Tune    string `json:"tune,omitempty"`
	AckWait int64  `json:"ack_wait,omitempty"` // nanoseconds
	Pinned  bool   `json:"pinned,omitempty"`   // the worker is the one chosen
	Work    Work   `json:"work,omitzero"`
}

// job asks for one thing. Its kind and its name are in its subject.
type job struct {
	Point   []int       `json:"point"`
	Samples int         `json:"samples,omitempty"`
	Code    *trial.Code `json:"code,omitempty"`
}

// result is what came of a job.
type result struct {
	Worker string      `json:"worker"`
	Built  trial.Built `json:"built,omitzero"`
	Code   *trial.Code `json:"code,omitempty"`
	Ran    trial.Ran   `json:"ran,omitzero"`
	Error  string      `json:"error,omitempty"` // after which nothing can be tried
}

const (
	mostMessage = 64 << 20 // bytes of a message, unpacked
	packedFrom  = 4 << 10  // bytes
	mostText    = 64 << 10 // bytes of an error, such as a compiler's log
)

// encode writes a message, packed by gzip where that is worth it.
func encode(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil || len(text) < packedFrom {
		return text, err
	}
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(text); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// decode reads a message from anybody.
func decode(data []byte, into any) error {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return json.Unmarshal(data, into)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(z, mostMessage+1))
	switch {
	case err != nil:
		return err
	case len(text) > mostMessage:
		return fmt.Errorf("a message of more than %d bytes", mostMessage)
	}
	return json.Unmarshal(text, into)
}

// encodeJob writes a job that fits a server: without its code, which can be made again,
// if need be.
func encodeJob(j job, most int64) ([]byte, error) {
	data, err := encode(&j)
	if err != nil || int64(len(data)) <= most || j.Code == nil {
		return data, err
	}
	j.Code = nil
	return encode(&j)
}

// encodeResult writes a result, likewise.
func encodeResult(r result, most int64) ([]byte, error) {
	r.Error, r.Built.Error, r.Ran.Error = clip(r.Error, mostText), clip(r.Built.Error, mostText), clip(r.Ran.Error, mostText)
	data, err := encode(&r)
	if err != nil || int64(len(data)) <= most {
		return data, err
	}
	r.Code = nil
	return encode(&r)
}
