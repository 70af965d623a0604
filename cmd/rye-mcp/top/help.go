package top

// helpText are the keys and what they do, in lines that fit any terminal.
func helpText() [][2]string {
	return [][2]string{
		{"↑ ↓  k j", "choose a thread; pgup, pgdn, home, end"},
		{"n", "the next thread that asks"},
		{"a", "answer what it asks"},
		{"s  S", "tell it something; S breaks off what it does"},
		{"c", "cancel it and everything below it"},
		{"r", "resume it with a message, when it has ended"},
		{"enter  z", "what it does, on the whole screen; and back"},
		{"tab", "the keys scroll what it does; and back"},
		{"← →  h l", "hide and show what is below it; so does space"},
		{"f", "all, unfinished, asking or failed threads"},
		{"/", "those with these letters in name, id or state"},
		{"m", "what actions have said"},
		{"esc", "put a message away; leave the page, the filter"},
		{"q", "quit, as Ctrl-C does; the threads go on"},
		{"Ctrl-Z", "suspend"},
		{"█ ▒ ░", "its money: spent, reserved, left; and below it"},
		{"? ● ○", "asks, works, is queued"},
		{"✓ ⇒ ✗", "completed, continued, failed or cancelled"},
	}
}

// help is the text from the line on that it was scrolled to.
func (m *Model) help(room int) []string {
	const keys = 11
	text := helpText()
	m.helpFrom = max(0, min(m.helpFrom, len(text)-room))
	var lines []string
	for _, row := range text[m.helpFrom:] {
		lines = append(lines, lineOf(m.width, span{m.style.title, " " + padded(row[0], keys)}, span{m.style.text, row[1]}))
	}
	return clip(lines, room)
}
