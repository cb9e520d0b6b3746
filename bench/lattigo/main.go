// Lattigo's BGV at the ring of X128, without any checking: go run . > lattigo.json
//
// The same n and primes of Q; t is one prime of 42 bits where ours has two. One thread,
// medians of wall-clock time. Its figures stand beside `alpheus bench tables --only X128`,
// run on the same machine right before or after.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/bgv"
)

const (
	samples = 21
	least   = 20 * time.Millisecond
)

// figure is one measured number, as `alpheus bench` prints them.
type figure struct {
	Group string  `json:"group"`
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	Ours  float64 `json:"ours"`
}

// microseconds is the median time of a run of work.
func microseconds(work func()) float64 {
	runs, times := 1, make([]float64, 0, samples)
	for sample(runs, work)*float64(runs) < float64(least.Microseconds()) {
		runs *= 2
	}
	for range samples {
		times = append(times, sample(runs, work))
	}
	slices.Sort(times)
	return times[samples/2]
}

func sample(runs int, work func()) float64 {
	begun := time.Now()
	for range runs {
		work()
	}
	return float64(time.Since(begun).Nanoseconds()) / 1000 / float64(runs)
}

// sure ends the program if something that is part of it does not work.
func sure[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	return value
}

func main() {
	parameters := sure(bgv.NewParametersFromLiteral(bgv.ParametersLiteral{
		LogN:             13,
		Q:                []uint64{2251799813554177, 2251799813472257, 2251799813406721, 2251799812980737},
		PlaintextModulus: 4398047051777,
	}))
	secret := rlwe.NewKeyGenerator(parameters).GenSecretKeyNew()
	encryptor := rlwe.NewEncryptor(parameters, secret)
	decryptor := rlwe.NewDecryptor(parameters, secret)
	encoder, evaluator := bgv.NewEncoder(parameters), bgv.NewEvaluator(parameters, nil)
	values := make([]uint64, parameters.MaxSlots())
	for i := range values {
		values[i] = uint64(i % 1000)
	}
	message := bgv.NewPlaintext(parameters, parameters.MaxLevel())
	must := func(err error) { sure(struct{}{}, err) }
	encrypt := func() *rlwe.Ciphertext {
		must(encoder.Encode(values, message))
		return sure(encryptor.EncryptNew(message))
	}
	a, b := encrypt(), encrypt()
	sum, product := sure(evaluator.AddNew(a, b)), sure(evaluator.MulNew(a, b))
	opened := make([]uint64, len(values))
	open := func(c *rlwe.Ciphertext) { must(encoder.Decode(decryptor.DecryptNew(c), opened)) }
	open(product)
	if opened[7] != 49 || opened[999] != 999*999 {
		sure(0, fmt.Errorf("the product is wrong"))
	}
	weight := uint64(0x123456789)
	group := "tables, X128: Lattigo " + version()
	json.NewEncoder(os.Stdout).Encode(map[string]any{"figures": []figure{
		{group, "encode and encrypt, secret key", "µs", microseconds(func() { encrypt() })},
		{group, "Add", "µs", microseconds(func() { must(evaluator.Add(a, b, sum)) })},
		{group, "ConstMult", "µs", microseconds(func() { must(evaluator.Mul(a, weight, sum)) })},
		{group, "Mult, not relinearised", "µs", microseconds(func() { must(evaluator.Mul(a, b, product)) })},
		{group, "decrypt and decode, degree 1", "µs", microseconds(func() { open(a) })},
		{group, "decrypt and decode, degree 2", "µs", microseconds(func() { open(product) })},
	}})
}

// version is that of the library, as it was built.
func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "github.com/tuneinsight/lattigo/v6" {
			return module.Version
		}
	}
	return "unknown"
}
