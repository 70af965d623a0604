package vector

import (
	"encoding/binary"
	"math"
)

// A number of a unit vector is coded with 7 bits, as a multiple of the vector's own step:
// code - zero is from -63 to 63. Codes are positive, so that four products fit into 16 bits,
// see [Code.product].
const (
	zero  = 64
	reach = 63
)

// Code is a unit vector of which each number is rounded to a step.
type Code struct {
	dimension int
	codes     []byte  // zero is added up to a multiple of 8
	step      float64 // of one unit of a code
	sum       uint64  // of all codes
	err       float64 // the length of what rounding has taken off
	reversed  []uint64
}

// stride is how many codes a vector of so many dimensions has.
func stride(dimension int) int { return (dimension + 7) &^ 7 }

// NewCode rounds a unit vector.
func NewCode(v []float32) Code {
	var largest float32
	for _, x := range v {
		largest = max(largest, x, -x)
	}
	// The step is kept as float32, so the codes are made with that.
	c := Code{dimension: len(v), codes: make([]byte, stride(len(v))), step: float64(largest / reach)}
	var lost float64
	per := 1 / c.step
	for i, x := range v {
		code := min(max(int(float64(x)*per+zero+0.5), zero-reach), zero+reach)
		off := float64(x) - float64(code-zero)*c.step
		lost += off * off
		c.codes[i] = byte(code)
		c.sum += uint64(code)
	}
	for i := len(v); i < len(c.codes); i++ {
		c.codes[i] = zero
		c.sum += zero
	}
	c.err = math.Sqrt(lost)
	return c
}

// Query prepares a code to be compared with many others.
func (c Code) Query() Code {
	c.reversed = make([]uint64, 0, len(c.codes)/4)
	for i := 0; i+8 <= len(c.codes); i += 8 {
		var even, odd uint64
		for lane := range 4 {
			even = even<<16 | uint64(c.codes[i+2*lane])
			odd = odd<<16 | uint64(c.codes[i+2*lane+1])
		}
		c.reversed = append(c.reversed, even, odd)
	}
	return c
}

// evenBytes keeps every second byte of eight, as numbers of 16 bits.
const evenBytes = 0x00ff00ff00ff00ff

// product is the sum of the products of all codes with those of a query. One multiplication
// makes four of them: in the product of a number of four lanes and one of the same lanes in
// the reverse order, the highest lane of 64 bits is the sum of the four products, and no
// lane below it reaches over: 4·127² < 2¹⁶.
func (c Code) product(codes []byte) (sum uint64) {
	q := c.reversed
	for len(codes) >= 32 && len(q) >= 8 {
		w, r := codes[:32:32], q[:8:8]
		a := binary.LittleEndian.Uint64(w[0:8])
		b := binary.LittleEndian.Uint64(w[8:16])
		d := binary.LittleEndian.Uint64(w[16:24])
		e := binary.LittleEndian.Uint64(w[24:32])
		sum += (a & evenBytes * r[0]) >> 48
		sum += (a >> 8 & evenBytes * r[1]) >> 48
		sum += (b & evenBytes * r[2]) >> 48
		sum += (b >> 8 & evenBytes * r[3]) >> 48
		sum += (d & evenBytes * r[4]) >> 48
		sum += (d >> 8 & evenBytes * r[5]) >> 48
		sum += (e & evenBytes * r[6]) >> 48
		sum += (e >> 8 & evenBytes * r[7]) >> 48
		codes, q = codes[32:], q[8:]
	}
	for len(codes) >= 8 && len(q) >= 2 {
		a := binary.LittleEndian.Uint64(codes[:8])
		sum += (a & evenBytes * q[0]) >> 48
		sum += (a >> 8 & evenBytes * q[1]) >> 48
		codes, q = codes[8:], q[2:]
	}
	return sum
}

// margins of what rounding can do to a cosine.
const (
	// deviations is how far the sum of many errors is from zero at most. An error points
	// anywhere, so its part in the direction of another vector has the deviation
	// length/√dimension; 8 deviations occur once in 10¹⁵ comparisons.
	deviations = 8
	// slack is for what float32 rounds in an exact cosine.
	slack = 1e-5
)

// bound is the most that the cosine of a query and a vector can be, by the code of that.
func (c Code) bound(codes []byte, step float64, sum uint64, err float64) float64 {
	product := float64(c.product(codes)) - zero*float64(c.sum+sum) + zero*zero*float64(len(codes))
	// |q·v - q'·v'| ≤ |q·(v-v')| + |(q-q')·v'|, where v' has the length 1+err at most.
	worst := err + c.err*(1+err)
	likely := deviations * worst / math.Sqrt(float64(c.dimension))
	return product*c.step*step + min(worst, likely) + slack
}
