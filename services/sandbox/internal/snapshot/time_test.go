package snapshot

import (
	"math"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A file system may keep times for which nanoseconds in 64 bits are too few.
func TestTimesThatAreTooFarAwayAreTheLastOnesThatAreNot(t *testing.T) {
	t.Parallel()
	for at, want := range map[unix.Timespec]int64{
		{Sec: -1 << 60}: math.MinInt64, {Sec: 1 << 60}: math.MaxInt64,
		{Sec: 9_223_372_036}: 9_223_372_036_000_000_000, {Sec: 9_223_372_036, Nsec: 999_999_999}: math.MaxInt64,
		{Sec: -1, Nsec: 5}: -999_999_995, {}: 0,
	} {
		if got := nanoseconds(at); got != want {
			t.Errorf("%+v is %d nanoseconds, want %d", at, got, want)
		}
	}
}

func TestAFileOfTheYear2300IsRestoredAsALateOne(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("f", "one")
	p.must(unix.UtimesNanoAt(unix.AT_FDCWD, p.path("f"), []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: 10_413_792_000}}, 0))
	if st, err := os.Stat(p.path("f")); err != nil || st.ModTime().Year() != 2300 {
		t.Skip("the file system does not keep such a time")
	}
	p.create("one")
	p.write("f", "two")
	p.restore("one")
	if st, err := os.Stat(p.path("f")); err != nil || !st.ModTime().Equal(time.Unix(0, math.MaxInt64)) {
		t.Errorf("it is of %v, %v", st.ModTime(), err)
	}
	if got := p.restore("one"); got.Changed != 0 {
		t.Errorf("another restore changes it again: %+v", got)
	}
}
