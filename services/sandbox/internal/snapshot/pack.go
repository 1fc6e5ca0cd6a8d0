package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/fairlead/fairlead/services/sandbox/internal/durable"
)

// Hash is the SHA-256 of an object's bytes, before they are compressed.
type Hash [sha256.Size]byte

// MarshalText writes a hash in hexadecimal.
func (h Hash) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h[:])), nil }

// UnmarshalText reads what MarshalText wrote.
func (h *Hash) UnmarshalText(b []byte) error {
	if hex.DecodedLen(len(b)) != len(h) {
		return errors.New("a hash has 64 hexadecimal digits")
	}
	_, err := hex.Decode(h[:], b)
	return err
}

// A pack is a file of objects: the magic, the stored bytes of each object, a footer that lists them, the
// footer's length and the magic again. Its name is the hash of its footer, and so of all its contents.
const (
	packMagic  = "FLPACK1\n"
	packSuffix = ".pack"
	footerItem = 32 + 8 + 4 + 4
	// packSize is the size at which a pack is sealed and another begun.
	packSize = 64 << 20
	// maxObject is the largest object: a list of hashes of a large file or folder. Contents are cut into
	// chunks before.
	maxObject = 64 << 20
)

// place is where an object is stored.
type place struct {
	pack   *pack
	offset int64
	stored uint32 // bytes in the pack
	raw    uint32 // bytes of the object; equal to stored if it is not compressed
}

type pack struct {
	name string
	path string
	size int64
	once sync.Once
	file *os.File
	err  error
}

// open opens the pack's file, once.
func (p *pack) open() (*os.File, error) {
	p.once.Do(func() { p.file, p.err = os.Open(p.path) })
	return p.file, p.err
}

// packs are the objects of a store.
type packs struct {
	dir     string
	mu      sync.RWMutex // guards what follows
	all     []*pack
	damaged []*pack // with err: their contents are unknown
	objects map[Hash]place
}

func openPacks(dir string) (*packs, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	p := &packs{dir: dir, objects: map[Hash]place{}}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), packSuffix)
		if !ok {
			continue // a pack that was being written when a crash came
		}
		if err := p.load(name); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// load reads a pack's footer. A damaged pack is no error: there may be snapshots that do not need it.
func (p *packs) load(name string) error {
	path := filepath.Join(p.dir, name+packSuffix)
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	k := &pack{name: name, path: path, size: st.Size()}
	footer, err := readFooter(f, st.Size())
	if err == nil {
		if sum := sha256.Sum256(footer); hex.EncodeToString(sum[:]) != name {
			err = errors.New("it lists something else")
		}
	}
	if err != nil {
		k.err = fmt.Errorf("%w: pack %s: %w", ErrDamaged, name, err)
		p.damaged = append(p.damaged, k)
		return nil
	}
	p.add(k, footer)
	return nil
}

// whole returns the error of a damaged pack, if there is one.
func (p *packs) whole() error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if len(p.damaged) == 0 {
		return nil
	}
	return p.damaged[0].err
}

func readFooter(f io.ReaderAt, size int64) ([]byte, error) {
	tail := make([]byte, 4+len(packMagic))
	if size < int64(len(tail)+len(packMagic)) {
		return nil, io.ErrUnexpectedEOF
	}
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(tail))
	if string(tail[4:]) != packMagic || n%footerItem != 0 || n > size-int64(len(tail)+len(packMagic)) {
		return nil, errors.New("it does not end like a pack")
	}
	footer := make([]byte, n)
	_, err := f.ReadAt(footer, size-int64(len(tail))-n)
	return footer, err
}

// add registers a pack's objects. Its footer is valid.
func (p *packs) add(k *pack, footer []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, k)
	p.damaged = slices.DeleteFunc(p.damaged, func(d *pack) bool { return d.path == k.path }) // it was made anew
	for ; len(footer) > 0; footer = footer[footerItem:] {
		p.objects[Hash(footer[:32])] = place{
			pack: k, offset: int64(binary.LittleEndian.Uint64(footer[32:])),
			stored: binary.LittleEndian.Uint32(footer[40:]), raw: binary.LittleEndian.Uint32(footer[44:]),
		}
	}
}

func (p *packs) has(h Hash) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	_, ok := p.objects[h]
	return ok
}

func (p *packs) size() int64 {
	p.mu.RLock()
	defer p.mu.RUnlock()
	var n int64
	for _, k := range slices.Concat(p.all, p.damaged) {
		n += k.size
	}
	return n
}

func (p *packs) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var faults []error
	for _, k := range p.all {
		k.once.Do(func() { k.err = os.ErrClosed })
		if k.file != nil {
			faults = append(faults, k.file.Close())
		}
	}
	p.all, p.damaged, p.objects = nil, nil, map[Hash]place{}
	return errors.Join(faults...)
}

var (
	decoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxObject))
	encoder, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false))
)

// missing returns the error for a missing object.
func (p *packs) missing(h Hash) error {
	if err := p.whole(); err != nil {
		return fmt.Errorf("object %x is missing: %w", h[:6], err)
	}
	return fmt.Errorf("%w: object %x is missing", ErrDamaged, h[:6])
}

// stored reads an object's bytes as stored in the pack.
func (p *packs) stored(h Hash) ([]byte, place, error) {
	p.mu.RLock()
	at, ok := p.objects[h]
	p.mu.RUnlock()
	if !ok {
		return nil, at, p.missing(h)
	}
	f, err := at.pack.open()
	if err != nil {
		return nil, at, err
	}
	if at.raw > maxObject || at.stored > at.raw || at.offset < 0 || at.offset+int64(at.stored) > at.pack.size {
		return nil, at, fmt.Errorf("%w: object %x is outside its pack", ErrDamaged, h[:6])
	}
	b := make([]byte, at.stored)
	if _, err := f.ReadAt(b, at.offset); err != nil {
		return nil, at, fmt.Errorf("read object %x: %w", h[:6], err)
	}
	return b, at, nil
}

// read returns an object after it has checked its hash.
func (p *packs) read(h Hash) ([]byte, error) {
	b, at, err := p.stored(h)
	if err != nil {
		return nil, err
	}
	if at.stored != at.raw {
		b, err = decoder.DecodeAll(b, make([]byte, 0, at.raw))
		if err != nil {
			return nil, fmt.Errorf("%w: object %x: %w", ErrDamaged, h[:6], err)
		}
	}
	if sha256.Sum256(b) != h {
		return nil, fmt.Errorf("%w: object %x has changed", ErrDamaged, h[:6])
	}
	return b, nil
}

// packWriter writes objects that the store lacks. Several goroutines may use it. After finish, the objects
// are part of the store.
type packWriter struct {
	packs  *packs
	mu     sync.Mutex // guards what follows
	file   *os.File   // nil before the first object
	offset int64
	footer []byte
	taken  map[Hash]bool
	made   []sealed
	added  int64
}

// sealed is a complete pack.
type sealed struct {
	pack   *pack
	footer []byte
}

func (p *packs) writer() *packWriter { return &packWriter{packs: p, taken: map[Hash]bool{}} }

// put stores an object unless the store has it, and returns its hash.
func (w *packWriter) put(b []byte) (Hash, error) {
	h := Hash(sha256.Sum256(b))
	if w.packs.has(h) || !w.claim(h) {
		return h, nil
	}
	stored := b
	if c := encoder.EncodeAll(b, make([]byte, 0, len(b)+64)); len(c) < len(b) {
		stored = c
	}
	return h, w.append(h, stored, len(b))
}

// claim reports whether the caller is the first to store an object, and must do so.
func (w *packWriter) claim(h Hash) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.taken[h] {
		return false
	}
	w.taken[h] = true
	return true
}

func (w *packWriter) append(h Hash, stored []byte, raw int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		f, err := os.CreateTemp(w.packs.dir, "new-")
		if err != nil {
			return err
		}
		w.file, w.offset, w.footer = f, int64(len(packMagic)), nil
		if _, err := f.WriteString(packMagic); err != nil {
			return err
		}
	}
	if _, err := w.file.Write(stored); err != nil {
		return err
	}
	w.footer = append(w.footer, h[:]...)
	w.footer = binary.LittleEndian.AppendUint64(w.footer, uint64(w.offset))
	w.footer = binary.LittleEndian.AppendUint32(w.footer, uint32(len(stored)))
	w.footer = binary.LittleEndian.AppendUint32(w.footer, uint32(raw))
	w.offset += int64(len(stored))
	if w.offset < packSize {
		return nil
	}
	return w.seal()
}

// seal completes the current pack and makes it durable. mu is held.
func (w *packWriter) seal() error {
	if w.file == nil {
		return nil
	}
	f := w.file
	sum := sha256.Sum256(w.footer)
	name := hex.EncodeToString(sum[:])
	end := binary.LittleEndian.AppendUint32(bytes.Clone(w.footer), uint32(len(w.footer)))
	end = append(end, packMagic...)
	_, err := f.Write(end)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	w.file = nil
	path := filepath.Join(w.packs.dir, name+packSuffix)
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	size := w.offset + int64(len(end))
	w.added += size
	w.made = append(w.made, sealed{&pack{name: name, path: path, size: size}, w.footer})
	return nil
}

// empty reports whether the store had all objects that were put.
func (w *packWriter) empty() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.file == nil && len(w.made) == 0
}

// finish makes all objects durable and part of the store.
func (w *packWriter) finish() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.seal(); err != nil || len(w.made) == 0 {
		return err
	}
	if err := durable.SyncDir(w.packs.dir); err != nil {
		return err
	}
	for _, m := range w.made {
		w.packs.add(m.pack, m.footer)
	}
	w.made = nil
	return nil
}

// discard drops unfinished packs.
func (w *packWriter) discard() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file != nil {
		_ = w.file.Close()
		_ = os.Remove(w.file.Name())
		w.file = nil
	}
}
