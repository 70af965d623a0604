package sqlite

import (
	"encoding/json"

	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// shared are the options of one file.
func (o Options) shared() sharedfile.Options {
	return sharedfile.Options{Poll: o.Poll, Patience: o.Patience, Record: encodeProcess(o.Process), Busy: o.busy, One: o.OneConnection}
}

// busy says who is waited for, and whether that process is suspended.
func (o Options) busy(w sharedfile.Wait) (stopped bool, err error) {
	holder := thread.Holder{Process: decodeProcess(w.Record)}
	if o.Holder != nil {
		holder = o.Holder(holder.Process, w.Files...)
	}
	return holder.Stopped, &thread.BusyError{Path: w.Path, Waited: w.Waited, Holder: holder}
}

// encodeProcess is the record of a process, nil of none. One that does not fit, as
// with the longest of host names, leaves the host out.
func encodeProcess(p thread.Process) []byte {
	if p.PID == 0 {
		return nil
	}
	record, err := json.Marshal(p)
	if err == nil && len(record) > sharedfile.RecordSize {
		p.Host = ""
		record, err = json.Marshal(p)
	}
	if err != nil {
		return nil
	}
	return record
}

// decodeProcess returns what encodeProcess wrote. Anything else counts as nothing:
// everybody can write to a lock file.
func decodeProcess(record []byte) (p thread.Process) {
	if err := json.Unmarshal(record, &p); err != nil || p.PID < 0 {
		return thread.Process{}
	}
	return p
}
