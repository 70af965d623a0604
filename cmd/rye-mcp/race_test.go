//go:build race

package main_test

// underRace tells that every process of a test takes several times as long, so
// that fewer have to do.
const underRace = true
