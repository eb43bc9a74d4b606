package wallclock

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strings"
	"time"
)

// Clock is the wall clock of a process.
type Clock struct {
	mem *os.File
	at  int64 // where the seconds are in its memory
}

// region is a part of the memory of a process.
type region struct {
	begin, end int64
	writable   bool
	name       string
}

// function is the machine code that stands in for clock_gettime(clock, *timespec). Zeros are for the address of the original, twice,
// and for the seconds.
var function = []byte{
	0x85, 0xff, // test edi, edi: CLOCK_REALTIME is 0
	0x75, 22, // jne to the last two instructions
	0x56,                               // push rsi, which also aligns the stack
	0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, // mov rax, original
	0xff, 0xd0, // call rax
	0x5e,                         // pop rsi
	0x48, 0x81, 0x06, 0, 0, 0, 0, // add qword [rsi], seconds
	0xc3,                               // ret
	0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, // mov rax, original
	0xff, 0xe0, // jmp rax
}

// Places in function.
const (
	original1, seconds, original2 = 7, 21, 28
	alignment                     = 16
)

// Open prepares a process of Go to have its clock set. It may be called again for the same process.
func Open(pid int) (c *Clock, err error) {
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = mem.Close() // it was not written to, or the write has failed
		}
	}()
	regions, err := readRegions(pid)
	if err != nil {
		return nil, err
	}
	vdso, err := read(mem, regions, func(r region) bool { return r.name == "[vdso]" })
	if err != nil {
		return nil, err
	}
	entry, err := vdso.entry()
	if err != nil {
		return nil, err
	}
	code := bytes.Clone(function)
	binary.LittleEndian.PutUint64(code[original1:], uint64(entry))
	binary.LittleEndian.PutUint64(code[original2:], uint64(entry))
	offset := (len(vdso.data) - len(code)) / alignment * alignment
	place := vdso.begin + int64(offset)
	there := bytes.Clone(vdso.data[offset : offset+len(code)])
	c = &Clock{mem, place + seconds}
	if copy(there[seconds:seconds+4], code[seconds:]); bytes.Equal(there, code) {
		return c, nil // of an earlier call
	}
	if !bytes.Equal(there, make([]byte, len(there))) {
		return nil, fmt.Errorf("the end of the vDSO of process %d is in use", pid)
	}
	variable, err := find(mem, regions, pid, entry)
	if err != nil {
		return nil, err
	}
	// A thread that reads the variable meanwhile gets one address or the other, and both functions are whole.
	if _, err := mem.WriteAt(code, place); err != nil {
		return nil, fmt.Errorf("writing to the vDSO of process %d: %w", pid, err)
	}
	if _, err := mem.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(place)), variable); err != nil {
		return nil, fmt.Errorf("writing to process %d: %w", pid, err)
	}
	return c, nil
}

// Set sets the clock ahead of the machine's by whole seconds, or back if that is negative; 0: it is right again.
func (c *Clock) Set(ahead time.Duration) error {
	n := ahead / time.Second
	if n < math.MinInt32 || n > math.MaxInt32 {
		return fmt.Errorf("a clock that is off by %s", ahead)
	}
	_, err := c.mem.WriteAt(binary.LittleEndian.AppendUint32(nil, uint32(int32(n))), c.at)
	return err
}

// Close lets go of the process, whose clock stays as it is set.
func (c *Clock) Close() error { return c.mem.Close() }

// readRegions reads the map of the memory of a process.
func readRegions(pid int) (regions []region, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		var r region
		var rights string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &r.begin, &r.end, &rights); err != nil {
			continue // [vsyscall] is too high for an int64
		}
		if fields := strings.Fields(lines.Text()); len(fields) > 5 {
			r.name = strings.Join(fields[5:], " ")
		}
		r.writable = strings.HasPrefix(rights, "rw")
		regions = append(regions, r)
	}
	return regions, lines.Err()
}

// part is a memory region with its contents.
type part struct {
	region
	data []byte
}

func read(mem *os.File, regions []region, is func(region) bool) (part, error) {
	for _, r := range regions {
		if is(r) {
			data := make([]byte, r.end-r.begin)
			_, err := mem.ReadAt(data, r.begin)
			return part{r, data}, err
		}
	}
	return part{}, fmt.Errorf("%s has no such part", mem.Name())
}

// entry returns the address of clock_gettime in a vDSO.
func (vdso part) entry() (int64, error) {
	file, err := elf.NewFile(bytes.NewReader(vdso.data))
	if err != nil {
		return 0, fmt.Errorf("the vDSO: %w", err)
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return 0, fmt.Errorf("the vDSO: %w", err)
	}
	for _, s := range symbols {
		if s.Name == "__vdso_clock_gettime" {
			return vdso.begin + int64(s.Value), nil
		}
	}
	return 0, fmt.Errorf("the vDSO has no clock")
}

// find returns the address of the variable of a program of Go that has a value that no other has: the address of a function of the vDSO.
func find(mem *os.File, regions []region, pid int, value int64) (found int64, err error) {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return 0, err
	}
	want := binary.LittleEndian.AppendUint64(nil, uint64(value))
	end := int64(0) // of the last part of the program's data
	for _, r := range regions {
		if !r.writable || r.name != exe && (r.name != "" || r.begin != end) { // what begins as 0 follows without a name
			continue
		}
		end = r.end
		p, err := read(mem, []region{r}, func(region) bool { return true })
		if err != nil {
			return 0, err
		}
		for i := 0; i+8 <= len(p.data); i += 8 {
			if !bytes.Equal(p.data[i:i+8], want) {
				continue
			}
			if found != 0 {
				return 0, fmt.Errorf("process %d has the address of its clock twice", pid)
			}
			found = r.begin + int64(i)
		}
	}
	if found == 0 {
		return 0, fmt.Errorf("process %d does not read its clock as a program of Go does", pid)
	}
	return found, nil
}
