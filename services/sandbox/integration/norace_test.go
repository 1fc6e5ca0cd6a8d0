//go:build !race

package integration

// raceDetector says that the tests run with the race detector, which has memory of its own for all memory that was ever used.
const raceDetector = false
