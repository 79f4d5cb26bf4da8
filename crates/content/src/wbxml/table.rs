//! Token tables: what is a token in documents of one type, looked up both ways.

/// An element's token.
#[derive(Clone, Copy, Debug)]
pub struct Tag {
    /// Its code page.
    pub page: u8,
    /// Its code, 0x05 to 0x3F.
    pub code: u8,
    /// The element's name.
    pub name: &'static str,
}

/// A token that begins an attribute: its name, and maybe the beginning of its value.
#[derive(Clone, Copy, Debug)]
pub struct AttributeStart {
    /// Its code page.
    pub page: u8,
    /// Its code, 0x05 to 0x7F without the global ones.
    pub code: u8,
    /// The attribute's name.
    pub name: &'static str,
    /// What the value begins with; empty if the token says nothing of it.
    pub value: &'static str,
}

/// A token that stands for a part of an attribute's value.
#[derive(Clone, Copy, Debug)]
pub struct AttributeValue {
    /// Its code page.
    pub page: u8,
    /// Its code, 0x85 to 0xFF without the global ones.
    pub code: u8,
    /// The text it stands for.
    pub text: &'static str,
}

/// What a document type is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentType {
    /// The registered number of its public identifier.
    pub number: u32,
    /// Its formal public identifier.
    pub public: &'static str,
    /// Where its DTD is.
    pub system: &'static str,
    /// Name of its outermost element.
    pub root: &'static str,
}

/// The tokens of a document type, arranged for reading and for writing.
#[derive(Clone, Debug, getset::Getters)]
pub struct TokenTable {
    /// What the type is called.
    #[getset(get = "pub")]
    document_type: DocumentType,
    tags_by_name: Vec<Tag>,
    tags_by_code: Vec<Tag>,
    starts_by_name: Vec<AttributeStart>,
    starts_by_code: Vec<AttributeStart>,
    values_by_text: Vec<AttributeValue>,
    values_by_code: Vec<AttributeValue>,
    dates: &'static [&'static str],
}

impl TokenTable {
    /// A table of these tokens. Attributes called as in `dates` hold a time, which is encoded as OPAQUE digits.
    pub fn new(
        document_type: DocumentType,
        tags: impl IntoIterator<Item = Tag>,
        starts: impl IntoIterator<Item = AttributeStart>,
        values: impl IntoIterator<Item = AttributeValue>,
        dates: &'static [&'static str],
    ) -> TokenTable {
        let mut tags_by_name: Vec<_> = tags.into_iter().collect();
        let mut tags_by_code = tags_by_name.clone();
        tags_by_name.sort_by_key(|t| t.name);
        tags_by_code.sort_by_key(|t| (t.page, t.code));
        let mut starts_by_name: Vec<_> = starts.into_iter().collect();
        let mut starts_by_code = starts_by_name.clone();
        // The longest value first, so that the first that fits is the best.
        starts_by_name.sort_by_key(|s| (s.name, usize::MAX - s.value.len()));
        starts_by_code.sort_by_key(|s| (s.page, s.code));
        let mut values_by_text: Vec<_> = values.into_iter().collect();
        let mut values_by_code = values_by_text.clone();
        values_by_text.sort_by_key(|v| (v.text.as_bytes().first().copied(), usize::MAX - v.text.len()));
        values_by_code.sort_by_key(|v| (v.page, v.code));
        TokenTable {
            document_type,
            tags_by_name,
            tags_by_code,
            starts_by_name,
            starts_by_code,
            values_by_text,
            values_by_code,
            dates,
        }
    }

    /// The same, without writing the tags and attribute starts that these say no to. They are still read: a version's
    /// reader understands later tokens where it meets them.
    #[must_use]
    pub fn writing(
        mut self,
        tag: impl Fn(&Tag) -> bool,
        start: impl Fn(&AttributeStart) -> bool,
    ) -> TokenTable {
        self.tags_by_name.retain(tag);
        self.starts_by_name.retain(start);
        self
    }

    /// The token of the element called `name`.
    pub fn tag(&self, name: &str) -> Option<&Tag> {
        self.tags_by_name.binary_search_by(|t| t.name.cmp(name)).ok().map(|at| &self.tags_by_name[at])
    }

    /// The element with this token.
    pub fn tag_called(&self, page: u8, code: u8) -> Option<&Tag> {
        let at = self.tags_by_code.binary_search_by_key(&(page, code), |t| (t.page, t.code)).ok()?;
        Some(&self.tags_by_code[at])
    }

    /// The start tokens of the attribute called `name`, those with the longest value first.
    pub fn starts(&self, name: &str) -> &[AttributeStart] {
        let from = self.starts_by_name.partition_point(|s| s.name < name);
        let len = self.starts_by_name[from..].iter().take_while(|s| s.name == name).count();
        &self.starts_by_name[from..from + len]
    }

    /// The attribute start with this token.
    pub fn start_called(&self, page: u8, code: u8) -> Option<&AttributeStart> {
        let at = self.starts_by_code.binary_search_by_key(&(page, code), |s| (s.page, s.code)).ok()?;
        Some(&self.starts_by_code[at])
    }

    /// The longest value token that `text` begins with.
    pub fn value(&self, text: &str) -> Option<&AttributeValue> {
        let first = text.as_bytes().first().copied();
        let from = self.values_by_text.partition_point(|v| v.text.as_bytes().first().copied() < first);
        let same =
            self.values_by_text[from..].iter().take_while(|v| v.text.as_bytes().first().copied() == first);
        same.into_iter().find(|v| text.starts_with(v.text))
    }

    /// The attribute value with this token.
    pub fn value_called(&self, page: u8, code: u8) -> Option<&AttributeValue> {
        let at = self.values_by_code.binary_search_by_key(&(page, code), |v| (v.page, v.code)).ok()?;
        Some(&self.values_by_code[at])
    }

    /// Whether the attribute called `name` holds a time.
    pub fn is_date(&self, name: &str) -> bool {
        self.dates.contains(&name)
    }
}
