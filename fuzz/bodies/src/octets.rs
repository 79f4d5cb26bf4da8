//! Octets as a source of decisions.

/// What is left of an input.
pub(crate) struct Octets<'a>(&'a [u8]);

impl<'a> Octets<'a> {
    pub(crate) fn new(octets: &'a [u8]) -> Octets<'a> {
        Octets(octets)
    }

    pub(crate) fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// The next octet, or none at the end.
    pub(crate) fn octet(&mut self) -> u8 {
        self.next().unwrap_or(0)
    }

    pub(crate) fn is_set(&mut self) -> bool {
        self.octet() & 1 != 0
    }

    pub(crate) fn number(&mut self) -> u16 {
        u16::from_be_bytes([self.octet(), self.octet()])
    }

    /// At most so many octets.
    pub(crate) fn take(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Octets behind an octet that says how many there are.
    pub(crate) fn piece(&mut self) -> &'a [u8] {
        let most = usize::from(self.octet());
        self.take(most)
    }

    /// One of these.
    pub(crate) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.octet()) % choices.len()]
    }
}

/// What an octet stands for: the last ones for these words, and all others for themselves.
pub(crate) fn said<'a>(octet: &'a u8, words: &[&'a [u8]]) -> &'a [u8] {
    match usize::from(*octet).checked_sub(256 - words.len()) {
        Some(number) => words[number],
        None => std::slice::from_ref(octet),
    }
}
