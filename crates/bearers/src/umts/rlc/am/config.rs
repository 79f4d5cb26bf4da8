//! Parameters of an acknowledged mode entity.

use airloom_base::{ConfigError, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::wire::LiWidth;

/// When SDUs are given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Discard {
    /// Never: after `max_dat` transmissions of a PDU the link is reset.
    #[default]
    NoDiscard,
    /// `timer_discard` after the SDU arrived, with explicit signalling.
    Timer,
    /// After `max_dat` transmissions of one of its PDUs, with explicit signalling.
    MaxDat,
}

/// Which super-fields name missing PDUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StatusKind {
    /// LIST: pairs of number and run length.
    #[default]
    List,
    /// BITMAP: one bit a PDU (and LIST for what a map cannot hold).
    Bitmap,
    /// RLIST: distances.
    Rlist,
}

/// RLC acknowledged mode (TS 25.322), both ends and both directions alike; zero turns a timer or counter off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(deny_unknown_fields, default)]
pub struct AmConfig {
    /// Window in PDUs, 1 to 4095, of sender and receiver.
    #[default(1024)]
    pub window: u16,
    /// Window a receiver offers its peer with the WINDOW super-field, 1 to `window`: at once when the link is set up (or
    /// reset), and with every report, since nobody acknowledges it. Without it nothing is offered and `window` holds.
    pub receive_window: Option<u16>,
    /// MaxDAT: the action of `discard` follows when a PDU would be sent this often (2 to 40 can be signalled; 0 = no limit).
    /// With `discard = "timer"` it does nothing.
    #[default(40)]
    pub max_dat: u16,
    /// When SDUs are given up: `"no-discard"`, `"timer"` or `"max-dat"`.
    pub discard: Discard,
    /// Timer_Discard of `discard = "timer"`.
    #[default(Duration::from_secs(5))]
    pub timer_discard: Duration,
    /// Timer_MRW: repetition of the MRW super-field.
    #[default(Duration::from_millis(300))]
    pub timer_mrw: Duration,
    /// MaxMRW: so many MRW are sent before the link is reset.
    #[default(12)]
    pub max_mrw: u8,
    /// Timer_RST: repetition of RESET.
    #[default(Duration::from_secs(1))]
    pub timer_rst: Duration,
    /// MaxRST: at most one less RESET are sent before the error is unrecoverable.
    #[default(12)]
    pub max_rst: u8,
    /// Poll with the last PDU of the transmission buffer (or of the window); off only with `timer_poll_periodic`.
    #[default(true)]
    pub last_pdu_poll: bool,
    /// Poll with the last PDU of the retransmission buffer.
    #[default(true)]
    pub last_retransmission_pdu_poll: bool,
    /// Poll_PDU: poll with every so many PDUs, new or repeated.
    pub poll_pdu: u16,
    /// Poll_SDU: poll with the end of every so many SDUs.
    #[default(1)]
    pub poll_sdu: u16,
    /// Poll_Window: poll while at least this share (percent) of the window is used.
    pub poll_window: u8,
    /// Timer_Poll: poll again if a poll was not answered; off only with `timer_poll_periodic`.
    #[default(Duration::from_millis(200))]
    pub timer_poll: Duration,
    /// Timer_Poll_Periodic: poll regularly while something is not acknowledged.
    pub timer_poll_periodic: Duration,
    /// Timer_Poll_Prohibit: least time between polls.
    pub timer_poll_prohibit: Duration,
    /// Timer_Status_Prohibit: least time between status reports.
    #[default(Duration::from_millis(150))]
    pub timer_status_prohibit: Duration,
    /// Timer_Status_Periodic: regular status reports while PDUs are missing or new ones came.
    pub timer_status_periodic: Duration,
    /// Missing PDU indicator: a gap triggers a status report.
    #[default(true)]
    pub missing_pdu_indicator: bool,
    /// Which super-fields name missing PDUs: `"list"`, `"bitmap"` or `"rlist"`. Decoders take all.
    pub status_sufi: StatusKind,
    /// Put status reports into the padding of data PDUs where they fit.
    #[default(true)]
    pub piggyback: bool,
    /// In-sequence delivery; off: SDUs are handed up as soon as they are complete.
    #[default(true)]
    pub in_sequence: bool,
    /// Use of the special value of the HE field: an SDU that ends with the PDU needs no length indicator.
    pub special_he: bool,
}

impl AmConfig {
    /// Are the values possible? The error names the key inside `rlc`.
    pub fn check(&self) -> Result<(), ConfigError> {
        let at = |key: &str, message: &str| {
            Err(ConfigError { path: vec!["rlc".to_owned(), key.to_owned()], message: message.to_owned() })
        };
        if !(1..=4095).contains(&self.window) {
            return at("window", "a window has 1 to 4095 PDUs");
        }
        if self.receive_window.is_some_and(|offered| !(1..=self.window).contains(&offered)) {
            //= TS 25.322 9.2.2.11.3: 0 changes nothing, and more than the configured window is taken for that.
            return at("receive_window", "a receiver offers 1 PDU to `window`");
        }
        if self.max_dat == 1 {
            return at(
                "max_dat",
                "1 would not even allow one transmission; say 2 or more, or 0 for no limit",
            );
        }
        if self.discard == Discard::MaxDat && self.max_dat == 0 {
            return at("max_dat", "discard = \"max-dat\" needs a limit of 2 or more");
        }
        if self.discard == Discard::Timer && self.timer_discard.is_zero() {
            return at("timer_discard", "must be above zero");
        }
        if self.max_rst < 2 {
            return at("max_rst", "must be 2 or more: at most max_rst - 1 RESETs are sent");
        }
        if self.max_mrw == 0 {
            return at("max_mrw", "must be 1 or more");
        }
        if self.timer_rst.is_zero() {
            return at("timer_rst", "must be above zero");
        }
        if self.timer_mrw.is_zero() {
            return at("timer_mrw", "must be above zero");
        }
        if self.poll_window > 100 {
            return at("poll_window", "a percentage: 0 (off) to 100");
        }
        for (key, timer) in [
            ("timer_poll_periodic", self.timer_poll_periodic),
            ("timer_status_periodic", self.timer_status_periodic),
        ] {
            if !timer.is_zero() && timer < Duration::from_millis(1) {
                return at(key, "0 (off), or at least 1ms");
            }
        }
        //= TS 25.322 9.7.1: the network avoids configurations that can deadlock. Of a last PDU that was lost, or its report, only
        //= a poll tells: Timer_Poll repeats one that was sent, and a last PDU has one for certain with `last_pdu_poll` only.
        if self.timer_poll_periodic.is_zero() && self.timer_poll.is_zero() {
            return at("timer_poll", "0 without timer_poll_periodic: a lost poll stops the link for ever");
        }
        if self.timer_poll_periodic.is_zero() && !self.last_pdu_poll {
            return at(
                "last_pdu_poll",
                "off without timer_poll_periodic: a last PDU without a poll, before a pause or a full window, stops the link for ever",
            );
        }
        Ok(())
    }
}

/// Size of the PDUs and what follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Octets of a PDU.
    pub pdu_octets: u16,
    /// Width of length indicators.
    pub li: LiWidth,
    /// Use of the special value of the HE field.
    pub special_he: bool,
}

impl Format {
    /// PDUs of `pdu_octets` octets.
    pub const fn new(pdu_octets: u16, special_he: bool) -> Self {
        Format { pdu_octets, li: LiWidth::for_pdu(pdu_octets as usize), special_he }
    }
}
