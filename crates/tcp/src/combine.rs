//! Settings that need each other: what a profile brings gives way, what somebody asked for is refused with the reason.
//! A circle, of which `config.rs` says why.

use super::config::{Config, Congestion, LossDetection, Pacing, ProportionalReduction};
use super::octets::DUP_THRESH;

/// Which of the settings that depend on others were given, and not taken over from the profile.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Given {
    pub loss_detection: bool,
    pub prr: bool,
    pub tlp: bool,
    pub frto: bool,
    pub undo_by_dsack: bool,
    pub undo_by_timestamps: bool,
    pub dup_acks: bool,
    pub receive_buffer: bool,
    pub receive_autotuning: bool,
    pub send_buffer: bool,
    pub send_autotuning: bool,
    pub segmentation_offload: bool,
}

/// `config` with the settings of its profile that cannot work switched off. An error names the setting that was given and
/// what it needs.
pub(super) fn combine(mut config: Config, given: Given) -> Result<Config, String> {
    let c = &mut config;
    let (off, three) = (ProportionalReduction::Off, DUP_THRESH as u8);
    if c.loss_detection == LossDetection::Rack
        && matches!(c.congestion, Congestion::Tahoe | Congestion::Reno | Congestion::Probing)
    {
        if given.loss_detection {
            return Err("loss_detection: \"rack\" does not go with congestion = \"tahoe\", \"reno\" or \"probing\", which meet losses in \
                        ways of their own; what Linux calls reno is \"newreno\" here"
                .to_owned());
        }
        c.loss_detection = LossDetection::DupAcks;
    }
    if c.loss_detection != c.profile.settings().loss_detection {
        // What a profile has beside its loss detection belongs to that.
        give_way(&mut c.prr, off, given.prr);
        give_way(&mut c.tlp, false, given.tlp);
        give_way(&mut c.frto, false, given.frto);
        give_way(&mut c.undo_by_dsack, false, given.undo_by_dsack);
        give_way(&mut c.undo_by_timestamps, false, given.undo_by_timestamps);
        give_way(&mut c.dup_acks, three, given.dup_acks);
    }
    // A buffer of a certain size does not grow by itself (Linux: SO_RCVBUF, SO_SNDBUF).
    if given.receive_buffer {
        give_way(&mut c.receive_autotuning, false, given.receive_autotuning);
    }
    if given.send_buffer {
        give_way(&mut c.send_autotuning, false, given.send_autotuning);
    }
    let rack = c.loss_detection == LossDetection::Rack;
    //= RFC 8985 (5.1, 7): RACK needs SACK, and the probe needs RACK to find what it uncovers.
    needs(
        &mut c.tlp,
        false,
        given.tlp,
        rack && c.sack,
        "tlp: needs loss_detection = \"rack\" and sack = true",
    )?;
    let needed = "undo_by_dsack: needs sack = true, which D-SACKs are a part of";
    needs(&mut c.undo_by_dsack, false, given.undo_by_dsack, c.sack, needed)?;
    let needed = "undo_by_timestamps: needs loss_detection = \"rack\" and timestamps = true; with \"dup-acks\" it is `eifel` \
                  that goes by timestamps";
    needs(&mut c.undo_by_timestamps, false, given.undo_by_timestamps, rack && c.timestamps, needed)?;
    let needed = "segmentation_offload: needs loss_detection = \"rack\", which counts segments, and pacing = \"off\": a paced \
                  segment leaves by itself";
    let possible = rack && c.pacing == Pacing::Off && c.congestion != Congestion::Bbr;
    needs(&mut c.segmentation_offload, false, given.segmentation_offload, possible, needed)?;
    let needed = "prr: needs a fast recovery, which congestion = \"tahoe\" does not have";
    needs(&mut c.prr, off, given.prr, c.congestion != Congestion::Tahoe, needed)?;
    let needed = "dup_acks: needs loss_detection = \"dup-acks\"; with \"rack\" the number adapts to the reordering that is seen";
    needs(&mut c.dup_acks, three, given.dup_acks, !rack, needed)?;
    if c.eifel && rack {
        return Err("eifel: needs loss_detection = \"dup-acks\"; with \"rack\" it is `undo_by_timestamps` that goes by \
                    timestamps"
            .to_owned());
    }
    if c.eifel && !c.timestamps && !c.frto {
        return Err(
            "eifel: needs timestamps = true to tell spurious retransmissions, or frto = true to answer to"
                .to_owned(),
        );
    }
    Ok(config)
}

fn give_way<T>(setting: &mut T, value: T, given: bool) {
    if !given {
        *setting = value;
    }
}

fn needs<T: PartialEq>(
    setting: &mut T,
    off: T,
    given: bool,
    possible: bool,
    why: &str,
) -> Result<(), String> {
    if possible || *setting == off {
        return Ok(());
    }
    if given {
        return Err(why.to_owned());
    }
    *setting = off;
    Ok(())
}

#[cfg(test)]
mod tests {
    use airloom_base::config::read;
    use serde_json::{Value, json};

    use super::super::Profile;
    use super::*;

    fn understood(table: &Value) -> Config {
        read::<Config>(table).unwrap()
    }

    #[test]
    fn what_a_profile_brings_gives_way_and_can_be_read_again() {
        for table in [
            json!({ "profile": "linux", "congestion": "reno" }),
            json!({ "profile": "linux", "congestion": "tahoe" }),
            json!({ "profile": "linux", "loss_detection": "dup-acks" }),
            json!({ "profile": "linux", "sack": false }),
            json!({ "profile": "linux", "timestamps": false }),
            json!({ "profile": "nt4", "congestion": "cubic", "loss_detection": "rack" }),
        ] {
            let c = understood(&table);
            assert_eq!(understood(&serde_json::to_value(&c).unwrap()), c, "{table}");
        }
        let c = understood(&json!({ "profile": "linux", "congestion": "reno" }));
        assert_eq!((c.loss_detection, c.prr), (LossDetection::DupAcks, ProportionalReduction::Off));
        assert!(!c.tlp && !c.frto && !c.undo_by_dsack && !c.undo_by_timestamps);
        let c = understood(&json!({ "profile": "linux", "loss_detection": "dup-acks", "frto": true }));
        assert!(c.frto && !c.tlp);
        for table in [
            json!({ "profile": "linux", "pacing": "on" }),
            json!({ "profile": "linux", "congestion": "bbr" }),
            json!({ "profile": "linux", "loss_detection": "dup-acks" }),
        ] {
            assert!(!understood(&table).segmentation_offload, "{table}");
        }
        assert!(read::<Config>(&json!({ "profile": "rfc", "segmentation_offload": true })).is_err());
        let c = understood(&json!({ "profile": "linux", "sack": false }));
        assert!(c.segmentation_offload && !c.tlp && !c.undo_by_dsack && c.frto && c.undo_by_timestamps);
    }

    #[test]
    fn what_was_asked_for_is_refused_with_what_it_needs() {
        for (table, needed) in [
            (json!({ "profile": "rfc", "tlp": true }), "tlp: needs loss_detection = \"rack\""),
            (json!({ "profile": "linux", "tlp": true, "sack": false }), "sack = true"),
            (json!({ "profile": "rfc", "undo_by_timestamps": true }), "`eifel`"),
            (json!({ "profile": "rfc", "sack": false, "undo_by_dsack": true }), "undo_by_dsack: needs sack"),
            (json!({ "profile": "linux", "eifel": true }), "`undo_by_timestamps`"),
            (json!({ "profile": "rfc", "timestamps": false, "eifel": true }), "timestamps = true"),
            (json!({ "profile": "linux", "dup_acks": 2 }), "dup_acks: needs loss_detection"),
            (json!({ "profile": "linux", "congestion": "reno", "loss_detection": "rack" }), "\"newreno\""),
            (json!({ "profile": "rfc", "congestion": "tahoe", "prr": "safe" }), "prr: needs a fast recovery"),
        ] {
            let error = read::<Config>(&table).unwrap_err().to_string();
            assert!(error.contains(needed), "{table}: {error}");
        }
    }

    #[test]
    fn no_profile_contradicts_itself() {
        for profile in Profile::ALL {
            assert_eq!(combine(profile.settings(), Given::default()).unwrap(), profile.settings());
        }
    }

    #[test]
    fn each_part_of_recovery_can_be_had_with_either_loss_detection_where_the_standard_allows_it() {
        for loss_detection in ["dup-acks", "rack"] {
            for (key, value) in [
                ("frto", json!(true)),
                ("undo_by_dsack", json!(true)),
                ("prr", json!("conservative")),
                ("prr", json!("slow-start")),
                ("prr", json!("safe")),
            ] {
                let mut table = json!({ "profile": "rfc", "loss_detection": loss_detection });
                table[key] = value.clone();
                assert_eq!(serde_json::to_value(understood(&table)).unwrap()[key], value);
            }
        }
    }
}
