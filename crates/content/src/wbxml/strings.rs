//! Which strings go into the string table, and where texts are cut for it.
//!
//! A string in place costs its octets and two more (STR_I, NUL). A reference costs one octet and the offset. So a string
//! pays in the table if it is used often enough, and whole texts that repeat pay soonest. What repeats inside of texts are
//! words: a text is cut into *units* (a word with the space before it, or a run of punctuation), and the cheapest way of
//! writing each text, given the table, is found by dynamic programming with two states: a string in place is open, or
//! none is. A unit's worth depends on its neighbours, since a reference between two inline strings costs two octets more.
//! So: begin with every unit that might pay, write all texts, throw out what did not pay for its place, and again, a few
//! times. Every round is linear in the texts.

use super::intern::Interner;

/// One string that the document carries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate<'a> {
    pub text: &'a str,
    /// Whether it may be cut: names of variables may not.
    pub may_cut: bool,
    /// Whether it has to be in the table: names of elements and attributes without a token.
    pub must_be_in_table: bool,
}

/// What to write for one candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Octets `from..to` of the text, in place.
    Inline { from: u32, to: u32 },
    /// An entry of the table.
    Table { offset: u32 },
}

/// The table, and what to write for every candidate.
pub(super) struct Plan<'a> {
    /// The table's strings in their order.
    pub table: Vec<&'a str>,
    parts: Vec<Part>,
    ends: Vec<u32>,
}

impl Plan<'_> {
    /// What to write for candidate `n`.
    pub fn parts(&self, n: usize) -> &[Part] {
        let from = if n == 0 { 0 } else { self.ends[n - 1] };
        &self.parts[from as usize..self.ends[n] as usize]
    }
}

/// Rounds of throwing out what does not pay. More change little: the table is nearly stable after three.
const ROUNDS: usize = 4;

/// Octets of `text` in the table or in place without what stands around it, in the document's character set.
pub(super) type Size<'s> = &'s dyn Fn(&str) -> usize;

/// Chooses. `size` says how long a string becomes, `nul` how many octets its end takes, `with_table` is whether strings
/// that need not be in the table may be.
pub(super) fn plan<'a>(
    candidates: &[Candidate<'a>],
    size: Size<'_>,
    nul: usize,
    with_table: bool,
) -> Plan<'a> {
    let mut pool = Pool::new(candidates, size, nul, with_table);
    pool.guess();
    // What an entry is worth depends on the others, so a round may also do harm: the best one counts, no table too.
    let (mut best, mut best_cost) = (Vec::new(), u64::MAX);
    for _ in 0..ROUNDS {
        pool.lay_out();
        let cost = pool.use_table(candidates, None);
        if cost < best_cost {
            (best, best_cost) = (pool.chosen(), cost);
        }
        if !pool.throw_out() {
            break;
        }
    }
    pool.choose(&[]);
    if pool.use_table(candidates, None) > best_cost {
        pool.choose(&best);
    }
    let mut parts = (Vec::new(), Vec::with_capacity(candidates.len()));
    pool.use_table(candidates, Some(&mut parts));
    Plan { table: pool.table, parts: parts.0, ends: parts.1 }
}

/// Savings are counted in sixteenths of an octet, since they are shared.
const SCALE: i64 = 16;

/// A string that may be an entry.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// Octets without NUL.
    size: u32,
    /// Times it is used; before the first round, times it appears.
    uses: u32,
    /// Octets saved by being used, over writing it in place, not counting its own place in the table; times [`SCALE`].
    saved: i64,
    /// Where it stands, if it is in the table.
    offset: Option<u32>,
    must: bool,
    in_table: bool,
}

struct Pool<'a> {
    entries: Vec<Entry>,
    strings: Vec<&'a str>,
    /// Each candidate's own entry.
    whole: Vec<u32>,
    /// Each candidate's units: where they end in `units`.
    unit_ends: Vec<u32>,
    units: Vec<u32>,
    table: Vec<&'a str>,
    nul: u32,
}

impl<'a> Pool<'a> {
    fn new(candidates: &[Candidate<'a>], size: Size<'_>, nul: usize, with_table: bool) -> Pool<'a> {
        let total: usize = candidates.iter().map(|c| c.text.len()).sum();
        let mut names = Interner::new(candidates.len() + total / 32);
        let mut entries: Vec<Entry> = Vec::new();
        let entry = |names: &mut Interner<'a>, entries: &mut Vec<Entry>, text: &'a str| {
            let number = names.number(text);
            if number == entries.len() {
                entries.push(Entry { size: size(text) as u32, ..Entry::default() });
            }
            entries[number].uses += 1;
            number as u32
        };
        let whole: Vec<u32> = candidates.iter().map(|c| entry(&mut names, &mut entries, c.text)).collect();
        // A text that repeats is an entry as a whole; only one that stands alone is worth cutting.
        let alone: Vec<bool> = whole.iter().map(|&own| entries[own as usize].uses == 1).collect();
        let (mut units, mut unit_ends) =
            (Vec::with_capacity(total / 5), Vec::with_capacity(candidates.len()));
        for (candidate, alone) in candidates.iter().zip(alone) {
            if alone && candidate.may_cut && with_table {
                units.extend(Units(candidate.text).map(|unit| entry(&mut names, &mut entries, unit)));
            }
            unit_ends.push(units.len() as u32);
        }
        for (candidate, &own) in candidates.iter().zip(&whole) {
            entries[own as usize].must |= candidate.must_be_in_table;
        }
        // Without a table only what must be stays.
        if !with_table {
            entries.iter_mut().for_each(|e| e.uses = u32::from(e.must));
        }
        let strings = names.strings().to_vec();
        Pool { entries, strings, whole, unit_ends, units, table: Vec::new(), nul: nul as u32 }
    }

    /// Every string that could pay under the best of neighbours.
    fn guess(&mut self) {
        for e in &mut self.entries {
            let best = i64::from(e.uses) * (i64::from(e.size + self.nul) + 1 - 2);
            e.in_table = e.must || (e.uses > 1 && best > i64::from(e.size + self.nul));
        }
    }

    /// Gives every entry its place, those first that are used most for their length: early places have short offsets.
    fn lay_out(&mut self) {
        let mut order: Vec<u32> =
            (0..self.entries.len() as u32).filter(|&n| self.entries[n as usize].in_table).collect();
        let nul = self.nul;
        let entries = &mut self.entries;
        order.sort_by_key(|&n| {
            let e = entries[n as usize];
            (std::cmp::Reverse((u64::from(e.uses) << 32) / u64::from(e.size + nul)), n)
        });
        entries.iter_mut().for_each(|e| e.offset = None);
        self.table.clear();
        let mut at = 0;
        for n in order {
            let e = &mut entries[n as usize];
            e.offset = Some(at);
            at += e.size + nul;
            self.table.push(self.strings[n as usize]);
        }
    }

    /// The entries in their order, as [`Pool::choose`] takes them.
    fn chosen(&self) -> Vec<(u32, u32)> {
        let placed = self.entries.iter().enumerate();
        placed.filter_map(|(n, e)| Some((n as u32, e.offset?))).collect()
    }

    /// Goes back to a table of before; what must be in it is in every table.
    fn choose(&mut self, table: &[(u32, u32)]) {
        self.entries.iter_mut().for_each(|e| (e.in_table, e.offset) = (e.must, None));
        if table.is_empty() {
            return self.lay_out();
        }
        let mut table = table.to_vec();
        table.sort_unstable_by_key(|entry| entry.1);
        self.table.clear();
        for (n, offset) in table {
            let e = &mut self.entries[n as usize];
            (e.in_table, e.offset) = (true, Some(offset));
            self.table.push(self.strings[n as usize]);
        }
    }

    /// Writes every candidate as short as the table allows; counts what each entry is worth, and keeps the parts if asked.
    /// The octets of table and candidates are returned.
    fn use_table(
        &mut self,
        candidates: &[Candidate<'a>],
        mut keep: Option<&mut (Vec<Part>, Vec<u32>)>,
    ) -> u64 {
        let placed = self.entries.iter().filter(|e| e.offset.is_some());
        let mut cost: u64 = placed.map(|e| u64::from(e.size + self.nul)).sum();
        self.entries.iter_mut().for_each(|e| (e.uses, e.saved) = (0, 0));
        let around = 1 + self.nul;
        let mut choices = Vec::new();
        let mut start = 0;
        for (n, candidate) in candidates.iter().enumerate() {
            let end = self.unit_ends[n] as usize;
            let units = &self.units[start..end];
            start = end;
            let own = &self.entries[self.whole[n] as usize];
            let in_place = own.size + around;
            let as_entry = own.offset.map_or(u32::MAX, reference);
            let cut =
                if units.len() > 1 { cheapest(units, &self.entries, around, &mut choices) } else { u32::MAX };
            let parts = keep.as_deref_mut();
            cost += u64::from(if candidate.must_be_in_table {
                as_entry
            } else {
                in_place.min(as_entry).min(cut)
            });
            if candidate.must_be_in_table || (as_entry <= in_place && as_entry <= cut) {
                let own = &mut self.entries[self.whole[n] as usize];
                own.uses += 1;
                // Against the best of the other ways, so that a text is not kept whole where its words are as cheap.
                own.saved += (i64::from(in_place.min(cut)) - i64::from(as_entry)) * SCALE;
                if let (Some((parts, _)), Some(offset)) = (parts, own.offset) {
                    parts.push(Part::Table { offset });
                }
            } else if cut < in_place {
                count(units, &choices, &mut self.entries, around);
                if let Some((parts, _)) = parts {
                    cut_parts(units, &choices, &self.entries, &self.strings, parts);
                }
            } else if let Some((parts, _)) = parts {
                parts.push(Part::Inline { from: 0, to: candidate.text.len() as u32 });
            }
            if let Some((parts, ends)) = keep.as_deref_mut() {
                ends.push(parts.len() as u32);
            }
        }
        cost
    }

    /// Takes out what saved no more than its own place costs; says whether there was any.
    fn throw_out(&mut self) -> bool {
        let mut any = false;
        for e in self.entries.iter_mut().filter(|e| e.in_table && !e.must) {
            if e.saved <= i64::from(e.size + self.nul) * SCALE {
                (e.in_table, e.offset, any) = (false, None, true);
            }
        }
        any
    }
}

/// Octets of a reference to `offset`.
fn reference(offset: u32) -> u32 {
    1 + airloom_wire::uintvar::len(offset) as u32
}

/// How a unit is written, and whether a string in place was open before it: what the way back needs.
#[derive(Clone, Copy, Debug, Default)]
struct Choice {
    /// Best way to have a string open after this unit came from one that was open before.
    open_from_open: bool,
    /// Likewise for having none open, which is a reference.
    closed_from_open: bool,
    /// Whether the unit is a reference on the way that was taken.
    taken: bool,
}

/// Cost of the cheapest way to write `units`; marks that way in `choices`.
fn cheapest(units: &[u32], entries: &[Entry], around: u32, choices: &mut Vec<Choice>) -> u32 {
    const NEVER: u32 = u32::MAX / 2;
    choices.clear();
    let (mut open, mut closed) = (NEVER, 0);
    for &unit in units {
        let e = &entries[unit as usize];
        let open_from_open = open <= closed + around;
        let closed_from_open = open < closed;
        let before = open.min(closed);
        open = if open_from_open { open } else { closed + around } + e.size;
        closed = e.offset.map_or(NEVER, |offset| before + reference(offset));
        choices.push(Choice { open_from_open, closed_from_open, taken: false });
    }
    let cost = open.min(closed);
    let mut is_open = open <= closed;
    for choice in choices.iter_mut().rev() {
        choice.taken = !is_open;
        is_open = if is_open { choice.open_from_open } else { choice.closed_from_open };
    }
    cost
}

/// Adds what every reference on the chosen way saves over writing its unit in place.
///
/// References in a row share what they save together: between two strings in place the row costs one string more, alone in
/// the text it saves one.
fn count(units: &[u32], choices: &[Choice], entries: &mut [Entry], around: u32) {
    let mut from = 0;
    while from < units.len() {
        let row = choices[from..].iter().take_while(|c| c.taken).count();
        if row == 0 {
            from += 1;
            continue;
        }
        let inline_beside = i64::from(from > 0) + i64::from(from + row < units.len());
        let shared = i64::from(around) * (1 - inline_beside) * SCALE / row as i64;
        for &unit in &units[from..from + row] {
            let e = &mut entries[unit as usize];
            let own = e.offset.map_or(0, reference);
            e.saved += (i64::from(e.size) - i64::from(own)) * SCALE + shared;
            e.uses += 1;
        }
        from += row;
    }
}

fn cut_parts(units: &[u32], choices: &[Choice], entries: &[Entry], strings: &[&str], parts: &mut Vec<Part>) {
    let (mut at, mut inline_from) = (0, None);
    for (&unit, choice) in units.iter().zip(choices) {
        let len = strings[unit as usize].len() as u32;
        match entries[unit as usize].offset {
            Some(offset) if choice.taken => {
                if let Some(from) = inline_from.take() {
                    parts.push(Part::Inline { from, to: at });
                }
                parts.push(Part::Table { offset });
            }
            _ => inline_from = inline_from.or(Some(at)),
        }
        at += len;
    }
    if let Some(from) = inline_from {
        parts.push(Part::Inline { from, to: at });
    }
}

/// A text's units: words with the space before them, and runs of what is neither word nor space.
struct Units<'a>(&'a str);

impl<'a> Iterator for Units<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        // Cuts are made at ASCII characters only, so never inside a character.
        let is_word = |octet: &u8| {
            octet.is_ascii_alphanumeric() || *octet >= 0x80 || matches!(octet, b'\'' | b'-' | b'_')
        };
        let octets = self.0.as_bytes();
        let space = octets.iter().take_while(|o| **o == b' ').count();
        let word = is_word(octets.get(space).or(octets.first())?);
        let len = octets[space..].iter().take_while(|o| is_word(o) == word && **o != b' ').count();
        let (unit, rest) = self.0.split_at(space + len);
        self.0 = rest;
        Some(unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan_of<'a>(texts: &[&'a str]) -> Plan<'a> {
        let candidates: Vec<_> =
            texts.iter().map(|text| Candidate { text, may_cut: true, must_be_in_table: false }).collect();
        plan(&candidates, &str::len, 1, true)
    }

    #[test]
    fn units_are_words_with_their_space_and_lose_nothing() {
        let text = "The W\u{e4}rme, (2nd) -- it's  a  ";
        let units: Vec<_> = Units(text).collect();
        assert_eq!(units, ["The", " W\u{e4}rme", ",", " (", "2nd", ")", " --", " it's", "  a", "  "]);
        assert_eq!(units.concat(), text);
    }

    #[test]
    fn a_text_that_repeats_is_an_entry_and_one_that_does_not_stays_in_place() {
        let plan = plan_of(&["the same text", "another", "the same text"]);
        assert_eq!(plan.table, ["the same text"]);
        assert_eq!(plan.parts(0), [Part::Table { offset: 0 }]);
        assert_eq!(plan.parts(1), [Part::Inline { from: 0, to: 7 }]);
        assert_eq!(plan.parts(2), [Part::Table { offset: 0 }]);
    }

    #[test]
    fn a_word_is_taken_out_of_texts_only_if_that_is_shorter() {
        // Twice ten octets: the entry costs 11, each use saves 10 - 4.
        let plan = plan_of(&["x protocols y", "1 protocols 2"]);
        assert_eq!(plan.table, [" protocols"]);
        assert_eq!(
            plan.parts(1),
            [Part::Inline { from: 0, to: 1 }, Part::Table { offset: 0 }, Part::Inline { from: 11, to: 13 }]
        );
        let plan = plan_of(&["x protocol y", "1 protocol 2"]);
        assert!(plan.table.is_empty(), "9 octets would save 2 x 5 and cost 10");
    }

    #[test]
    fn the_most_used_entries_stand_first() {
        let often = "a string that is used very often";
        let mut texts = vec!["a string that is rarely used", "a string that is rarely used"];
        texts.extend([often; 9]);
        assert_eq!(plan_of(&texts).table[0], often);
    }
}
