package config

import "slices"

// Notify is config/agent/notify.yaml: how the user is told of threads outside of any
// client. No project has a say in it.
type Notify struct {
	Events   []string `yaml:"events"`   // kinds of thread.News
	Children bool     `yaml:"children"` // threads that other threads have started, too
	Command  []string `yaml:"command"`  // program and arguments; empty: none
	Desktop  bool     `yaml:"desktop"`
	Webhook  string   `yaml:"webhook"` // URL; empty: none
}

// Wants reports whether anybody is told of an event.
func (n Notify) Wants(event string) bool {
	return (len(n.Command) > 0 || n.Desktop || n.Webhook != "") && slices.Contains(n.Events, event)
}

// NotifyFile is the file of the user's settings, below .ai/config. Without it nobody is
// told of anything.
const NotifyFile = "agent/notify.yaml"

// Notify reads notify.yaml.
func (sn *Snapshot) Notify() (Notify, []string, error) { return sn.notify() }

func (sn *Snapshot) notifySettings() (settings, error) { return sn.load(notifyKind) }

func (sn *Snapshot) readNotify() (Notify, []string, error) {
	s, err := sn.notifySettings()
	if err != nil {
		return Notify{}, s.warnings, err
	}
	return valuesOf(sn, notifyKind, s, func() (n Notify, _ []string, _ error) {
		err := s.decode(&n)
		return n, s.warnings, err
	})
}
