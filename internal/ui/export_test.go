package ui

// Patterns that the handler registers.
func (u *UI) Patterns() []string { return u.mux.Patterns() }
