package batch

// state is where a seat is now.
type state struct {
	at  int32
	lie *lie
}

// lie is where a seat's units lie, or in which parts it is; nil for neither.
type lie struct {
	on    []Units
	parts []Part
}

func (s state) on() []Units {
	if s.lie == nil {
		return nil
	}
	return s.lie.on
}

func (s state) parts() []Part {
	if s.lie == nil {
		return nil
	}
	return s.lie.parts
}

// state is where a seat was given.
func (s *Seat) state() state {
	if len(s.On)+len(s.Parts) == 0 {
		return state{at: s.At}
	}
	return state{s.At, &lie{s.On, s.Parts}}
}
