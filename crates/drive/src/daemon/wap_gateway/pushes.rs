//! Initiators submit pushes here: PAP over HTTP, by POST to whatever path.

use airloom_base::Instant;
use airloom_proxies::wap_gateway::{Gateway, pap};
use http::{Method, StatusCode};

use super::super::http_face::{Call, text};

pub(super) fn answer(gateway: &mut Gateway, now: Instant, call: Call) {
    let response = if call.method == Method::POST {
        let content_type = call.content_type.as_deref().unwrap_or_default();
        let answer = gateway.handle_pap(now, content_type, &call.body);
        let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        text(status, pap::TYPE, answer.body)
    } else {
        text(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "pushes are submitted by POST (PAP)\n")
    };
    // Whoever asked may be gone.
    let _ = call.answer.send(response);
}
