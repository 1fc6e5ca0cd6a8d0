//go:build !race

package integration

// raceDetector says that the tests run with the race detector, which makes them
// several times slower.
const raceDetector = false
