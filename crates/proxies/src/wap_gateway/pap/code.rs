//! Codes of answers: 1xxx it is done or will be, 2xxx the initiator's fault, 3xxx and 4xxx the gateway's, 5xxx the client's.

use airloom_transports::wsp::status::Reason;

/// Done.
pub const OK: u16 = 1000;
/// Taken, and under way.
pub const ACCEPTED: u16 = 1001;
/// Not understood.
pub const BAD_REQUEST: u16 = 2000;
/// It must not be done.
pub const FORBIDDEN: u16 = 2001;
/// The address is none.
pub const ADDRESS_ERROR: u16 = 2002;
/// There is no push of that name.
pub const PUSH_ID_NOT_FOUND: u16 = 2004;
/// There is a push of that name already.
pub const DUPLICATE_PUSH_ID: u16 = 2007;
/// It is too late to take a push back.
pub const CANCELLATION_NOT_POSSIBLE: u16 = 2008;
/// Such a thing is not done here.
pub const NOT_IMPLEMENTED: u16 = 3001;
/// There is more than one address.
pub const MULTIPLE_ADDRESSES: u16 = 3005;
/// The content could not be put into the form in which it is pushed.
pub const TRANSFORMATION_FAILURE: u16 = 3006;
/// The client cannot be reached in the way that was asked for.
pub const METHOD_NOT_POSSIBLE: u16 = 3007;
/// The bearer that was asked for is not to be had.
pub const BEARER_NOT_AVAILABLE: u16 = 3010;
/// Pushes are not replaced here.
pub const REPLACEMENT_NOT_SUPPORTED: u16 = 3011;
/// It failed.
pub const SERVICE_FAILURE: u16 = 4000;
/// There are too many pushes.
pub const SERVICE_UNAVAILABLE: u16 = 4001;

/// The client has aborted the push: a code for each reason of WSP. Kannel names one of them, 5028 for USERPND (0xEC); the
/// others are as far from it as the reasons are.
pub fn aborted(why: Reason) -> u16 {
    5028 + u16::from(why.code()) - u16::from(Reason::UserPushNotDelivered.code())
}
