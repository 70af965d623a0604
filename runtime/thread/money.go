package thread

import (
	"encoding/json"
	"fmt"
	"math"
)

// Micros is money in millionths of a US dollar. Storage and arithmetic use it;
// JSON shows dollars as a number.
type Micros int64

// MicrosPerDollar converts between the two.
const MicrosPerDollar = 1_000_000

// maxDollars keeps sums of many amounts far away from overflow.
const maxDollars = 1e9

// Dollars converts an amount in dollars, rounding to the nearest micro-dollar.
// NaN, infinite, negative and absurdly large amounts are refused.
func Dollars(d float64) (Micros, error) {
	if math.IsNaN(d) || d < 0 || d > maxDollars {
		return 0, fmt.Errorf("amount %v is not between 0 and %.0f dollars", d, float64(maxDollars))
	}
	return Micros(math.Round(d * MicrosPerDollar)), nil
}

// Dollars is the amount as a float, for display and JSON only.
func (m Micros) Dollars() float64 { return float64(m) / MicrosPerDollar }

// String shows four decimals, or six where that would hide the amount.
func (m Micros) String() string {
	if m != 0 && m > -100 && m < 100 {
		return fmt.Sprintf("$%.6f", m.Dollars())
	}
	return fmt.Sprintf("$%.4f", m.Dollars())
}

// MarshalJSON writes dollars.
func (m Micros) MarshalJSON() ([]byte, error) { return json.Marshal(m.Dollars()) }

// UnmarshalJSON reads dollars.
func (m *Micros) UnmarshalJSON(b []byte) error {
	var d float64
	if err := json.Unmarshal(b, &d); err != nil {
		return err
	}
	v, err := Dollars(d)
	if err != nil {
		return err
	}
	*m = v
	return nil
}
