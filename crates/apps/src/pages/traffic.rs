//! Pages drawn from a model of web traffic.
//!
//! The pages of a run follow from its seed and the host's name alone, so protocols that are compared at one seed load
//! the same pages. With heavy tails nothing else can be compared: the mean of a thousand of these pages is far from the
//! mean of the law (`docs/guides/web-traffic.md`).

use airloom_base::law::{Kind, Law};
use airloom_base::random::Stream;
use airloom_base::units::Octets;
use airloom_base::{ConfigError, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Detailed, Object};

/// Most inline objects of one page, whatever the law says: a page must fit into memory.
const MOST_OBJECTS: f64 = 10_000.0;

/// Most octets of one object (what a path can ask of `http-server` and a count of milliseconds can bear).
const MOST_OCTETS: f64 = 1e12;

/// Longest pause.
const MOST_SECONDS: f64 = 1e6;

/// A published model of what people load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Model {
    /// HTTP/1.0 pages of Afif and others 2006, section 3.2: Pareto page 10 kB (shape 1.2), at least three inline
    /// objects, Pareto 3 (1.5), each Pareto 4 kB (1.1). It says nothing of pauses: there are none.
    #[default]
    #[serde(rename = "afif-2006")]
    Afif2006,
    /// Web browsing of 3GPP and IEEE 802.16m: lognormal sizes up to 2 MB, 5.6 inline objects on average, reading time
    /// exponential 30 s, parsing time exponential 0.13 s.
    #[serde(rename = "3gpp")]
    Threegpp,
}

/// Pages drawn from a model, and what is changed in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Traffic {
    /// `"afif-2006"` or `"3gpp"`.
    pub model: Model,
    /// How many pages; if neither this nor `within` is given, one.
    pub pages: Option<u32>,
    /// No page begins later than this after the first.
    pub within: Option<Duration>,
    /// Octets of the first object of a page.
    pub main: Option<Law>,
    /// Octets of each inline object.
    pub inline: Option<Law>,
    /// How many inline objects a page has, rounded up.
    pub count: Option<Law>,
    /// Most octets of an object, first or inline; of both laws the limit if they have none that is lower.
    pub most: Option<Octets>,
    /// Seconds between a page and the next one.
    pub reading: Option<Law>,
    /// Seconds between the arrival of the first object and the requests for those it names.
    pub parsing: Option<Law>,
}

/// Draws pages.
pub(crate) struct Drawing {
    main: Law,
    inline: Law,
    count: Law,
    reading: Law,
    parsing: Law,
    stream: Stream,
}

/// One drawn page.
pub(crate) struct Drawn {
    pub(crate) objects: Vec<Object>,
    pub(crate) reading: Duration,
    pub(crate) parsing: Duration,
}

impl Model {
    /// Laws of first object, inline objects, their number, reading and parsing time.
    fn laws(self) -> [Law; 5] {
        let never = Law::of(Kind::Fixed(0.0));
        match self {
            Model::Afif2006 => [
                Law::of(Kind::Pareto { mean: 10_000.0, shape: 1.2 }),
                Law::of(Kind::Pareto { mean: 4_000.0, shape: 1.1 }),
                // "The pages generated contain at least three types of objects."
                Law::of(Kind::Pareto { mean: 3.0, shape: 1.5 }).within(Some(3.0), None),
                never.clone(),
                never,
            ],
            Model::Threegpp => [
                Law::of(Kind::Lognormal { mu: 8.37, sigma: 1.37 }).within(Some(100.0), Some(2e6)),
                Law::of(Kind::Lognormal { mu: 6.17, sigma: 2.36 }).within(Some(50.0), Some(2e6)),
                // Shape 1.1 and smallest value 2, cut at 55, less 2. Rounded to the nearest, which is half less, rounded
                // up: so it has the published mean of 5.64.
                Law {
                    add: -2.5,
                    ..Law::of(Kind::Pareto { mean: 22.0, shape: 1.1 }).within(None, Some(55.0))
                },
                Law::of(Kind::Exponential { mean: 30.0 }),
                Law::of(Kind::Exponential { mean: 0.13 }),
            ],
        }
    }
}

impl Traffic {
    /// Draws the pages with `stream`; the error's path is below this table.
    pub(crate) fn drawing(&self, stream: Stream) -> Result<Drawing, ConfigError> {
        let [main, inline, count, reading, parsing] = self.model.laws();
        let own = |law: &Option<Law>, usual: Law, key: &str| {
            let law = law.clone().unwrap_or(usual);
            law.check().map_err(|error| error.below(key)).map(|()| law)
        };
        let cut = |law: Law| match self.most {
            Some(Octets(most)) => {
                let most = law.most.map_or(most as f64, |own| own.min(most as f64));
                Law { most: Some(most), least: law.least.map(|least| least.min(most)), ..law }
            }
            None => law,
        };
        Ok(Drawing {
            main: cut(own(&self.main, main, "main")?),
            inline: cut(own(&self.inline, inline, "inline")?),
            count: own(&self.count, count, "count")?,
            reading: own(&self.reading, reading, "reading")?,
            parsing: own(&self.parsing, parsing, "parsing")?,
            stream,
        })
    }

    /// How many pages at most.
    pub(crate) fn pages(&self) -> u64 {
        match (self.pages, self.within) {
            (Some(pages), _) => u64::from(pages),
            (None, Some(_)) => u64::MAX,
            (None, None) => 1,
        }
    }
}

impl Drawing {
    /// The next page.
    pub(crate) fn draw(&mut self) -> Drawn {
        let main = size(self.main.draw(&mut self.stream));
        let count = self.count.draw(&mut self.stream).ceil().clamp(0.0, MOST_OBJECTS) as usize;
        let sizes = (0..count).map(|_| size(self.inline.draw(&mut self.stream)));
        let objects = std::iter::once(main).chain(sizes).map(object).collect();
        let mut seconds =
            |law: &Law| Duration::from_secs_f64(law.draw(&mut self.stream).clamp(0.0, MOST_SECONDS));
        Drawn { objects, reading: seconds(&self.reading), parsing: seconds(&self.parsing) }
    }
}

fn size(octets: f64) -> u64 {
    octets.round().clamp(1.0, MOST_OCTETS) as u64
}

fn object(size: u64) -> Object {
    Object::Detailed(Detailed { path: format!("/{size}"), size: Some(Octets(size)), ..Detailed::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(traffic: &Traffic, count: usize) -> Vec<Drawn> {
        let mut drawing = traffic.drawing(Stream::new(5, "pages")).unwrap();
        (0..count).map(|_| drawing.draw()).collect()
    }

    fn octets(object: &Object) -> f64 {
        if let Object::Detailed(Detailed { size: Some(size), .. }) = object {
            size.0 as f64
        } else {
            unreachable!("drawn objects have sizes")
        }
    }

    fn mean(values: impl Iterator<Item = f64>) -> f64 {
        let (count, sum) = values.fold((0.0, 0.0), |(n, sum), value| (n + 1.0, sum + value));
        sum / count
    }

    fn near(found: f64, expected: f64, share: f64) {
        assert!((found / expected - 1.0).abs() < share, "{found} is not {expected}");
    }

    #[test]
    fn pages_of_2006_have_three_objects_or_more_and_its_medians() {
        let drawn = pages(&Traffic::default(), 50_000);
        assert!(drawn.iter().all(|page| page.objects.len() >= 4 && page.reading.is_zero()));
        let mut main: Vec<f64> = drawn.iter().map(|page| octets(&page.objects[0])).collect();
        main.sort_by(f64::total_cmp);
        near(main[25_000], 2_970.0, 0.02);
        let mut inline: Vec<f64> = drawn.iter().flat_map(|page| &page.objects[1..]).map(octets).collect();
        inline.sort_by(f64::total_cmp);
        near(inline[inline.len() / 2], 683.0, 0.02);
    }

    #[test]
    fn pages_of_3gpp_have_its_means() {
        let drawn = pages(&Traffic { model: Model::Threegpp, ..Traffic::default() }, 200_000);
        // exp(mu + sigma^2 / 2); published are 10,710 octets, 3 % less than these parameters give.
        near(mean(drawn.iter().map(|page| octets(&page.objects[0]))), 11_030.0, 0.01);
        near(mean(drawn.iter().map(|page| page.objects.len() as f64 - 1.0)), 5.64, 0.02);
        near(mean(drawn.iter().map(|page| page.reading.as_secs_f64())), 30.0, 0.01);
        near(mean(drawn.iter().map(|page| page.parsing.as_secs_f64())), 0.13, 0.01);
    }

    #[test]
    fn a_limit_cuts_every_object() {
        let traffic = Traffic { most: Some(Octets(5000)), ..Traffic::default() };
        let drawn = pages(&traffic, 2_000);
        assert!(drawn.iter().flat_map(|page| &page.objects).all(|object| octets(object) <= 5000.0));
        assert!(drawn.iter().any(|page| octets(&page.objects[0]) == 5000.0));
    }

    #[test]
    fn a_law_that_cannot_be_is_named() {
        let law = Law::of(Kind::Pareto { mean: 1.0, shape: 0.5 });
        let traffic = Traffic { count: Some(law), ..Traffic::default() };
        let error = traffic.drawing(Stream::new(1, "pages")).err().unwrap();
        assert_eq!(error.path, ["count", "law", "shape"]);
    }
}
