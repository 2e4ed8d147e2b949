// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"
)

// interval is an estimate with its 95 % confidence interval, mid ± half.
type interval struct{ mid, half float64 }

func (i interval) high() float64 { return i.mid + i.half }
func (i interval) low() float64  { return i.mid - i.half }

// ratio estimates sum(x)/sum(base) over runs that are paired: run i of both
// saw the same requests. The interval is that of a ratio estimator, with
// Student's t.
func ratio(x, base []float64) interval {
	n := float64(len(x))
	var sumX, sumBase float64
	for i := range x {
		sumX += x[i]
		sumBase += base[i]
	}
	if sumBase == 0 {
		return interval{math.NaN(), math.NaN()}
	}
	r := sumX / sumBase
	if n < 2 {
		return interval{r, math.Inf(1)}
	}
	var squares float64
	for i := range x {
		d := x[i] - r*base[i]
		squares += d * d
	}
	return interval{r, student(n-1) * math.Sqrt(squares/(n*(n-1))) / (sumBase / n)}
}

// student is the 97.5 % quantile of Student's t with this many degrees of
// freedom, by the expansion around the normal quantile (exact for one and two).
func student(freedom float64) float64 {
	switch freedom {
	case 1:
		return 12.706
	case 2:
		return 4.303
	}
	const z = 1.959964
	z3, z5, z7 := z*z*z, math.Pow(z, 5), math.Pow(z, 7)
	return z + (z3+z)/(4*freedom) + (5*z5+16*z3+3*z)/(96*freedom*freedom) +
		(3*z7+19*z5+17*z3-15*z)/(384*freedom*freedom*freedom)
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// median sorts a copy.
func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	if len(s)%2 == 1 {
		return s[len(s)/2]
	}
	return (s[len(s)/2-1] + s[len(s)/2]) / 2
}
