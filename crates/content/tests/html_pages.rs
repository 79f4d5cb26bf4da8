//! Web pages as decks.

use airloom_content::markup;
use airloom_content::wml::html;
use airloom_testkit::cases;
use proptest::prelude::*;

/// The card of the deck that a page becomes, as text without its first lines.
fn deck(page: &str) -> String {
    let text = markup::write(&html::convert(page.as_bytes(), None));
    let parsed = markup::parse(text.as_bytes(), None).expect("a page becomes a deck");
    assert!(parsed.warnings.is_empty(), "{:?}\n{text}", parsed.warnings);
    let body = text.split_once("<wml>").expect("a deck").1;
    body.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
        .replace("\n</card>\n</wml>", "")
}

#[test]
fn headings_text_styles_and_links() {
    let page = "<!doctype html><html><head><title> News \n today </title><style>p{}</style></head><body>
        <h1>Head</h1><p>One <b>two</b>, <a href='/x?a=1&amp;b=2'>three <i>four</i></a>.<br>five
        <ul><li>six<li>seven</ul><script>if (a < b) alert('<p>')</script><h3>Small</h3>$5";
    assert_eq!(
        deck(page),
        "<card id=\"page\" title=\"News today\">
<p><big>Head</big></p>
<p>One <b>two</b>, <a href=\"/x?a=1&amp;b=2\">three four</a>.<br/>five</p>
<p>- six</p>
<p>- seven</p>
<p><b>Small</b></p>
<p>$$5</p>"
    );
}

#[test]
fn elements_that_open_and_close_as_they_please_become_nested() {
    assert_eq!(deck("<b>a<i>b</b>c</i>d"), "<card id=\"page\">\n<p><b>a</b><b><i>b</i></b><i>c</i>d</p>");
    assert_eq!(
        deck("<a href=x>a<a href=y>b</a></a></b>c"),
        "<card id=\"page\">\n<p><a href=\"x\">a</a><a href=\"y\">b</a>c</p>"
    );
    assert_eq!(
        deck("<b>one<p>two</b> three"),
        "<card id=\"page\">\n<p><b>one</b></p>\n<p><b>two</b> three</p>"
    );
}

#[test]
fn pictures_are_their_words_and_tables_lines() {
    let page = "<img src=a.gif alt='A cat'> <img src=b.gif><table><tr><td>1<td>2<tr><td>3</table><a href='javascript:x()'>no</a>";
    assert_eq!(deck(page), "<card id=\"page\">\n<p>[A cat]</p>\n<p>1 2</p>\n<p>3</p>\n<p>no</p>");
    assert_eq!(
        deck("<center>x</center><pre>a\n b</pre>"),
        "<card id=\"page\">\n<p align=\"center\">x</p>\n<p>a<br/>b</p>"
    );
}

#[test]
fn a_form_becomes_fields_and_a_task() {
    let page = "<form action=/find method=POST>Name: <input name=first-name value=Jo size=8>
        <input type=password name=pw><input type=hidden name=h value=1>
        <select name=s><option value=a>Ay<option selected>Bee</select>
        <input type=checkbox name=c checked> Agree <input type=submit name=go value=Find></form>after";
    assert_eq!(deck(page), "<card id=\"page\">
<p>Name: <input name=\"first_name\" value=\"Jo\" size=\"8\"/> <input name=\"pw\" type=\"password\"/> <select name=\"s\" ivalue=\"2\"><option value=\"a\">Ay</option><option value=\"Bee\">Bee</option></select> <select name=\"c\" multiple=\"true\" ivalue=\"1\"><option value=\"on\">Agree</option></select></p>
<do type=\"accept\" name=\"send\" label=\"Find\">
<go href=\"/find\" method=\"post\">
<postfield name=\"first-name\" value=\"$(first_name)\"/>
<postfield name=\"pw\" value=\"$(pw)\"/>
<postfield name=\"h\" value=\"1\"/>
<postfield name=\"s\" value=\"$(s)\"/>
<postfield name=\"c\" value=\"$(c)\"/>
<postfield name=\"go\" value=\"Find\"/>
</go>
</do>
<p>after</p>");
}

#[test]
fn radio_buttons_of_a_name_are_one_selection() {
    let page = "<form>Colour:<br><input type=radio name=c value=r> Red<br><input type=radio name=c value=g checked> Green
        <p><b><input type=RADIO name=size> one</b> <input type=radio name=c> Other <input type=checkbox name=c></form>
        <form><input type=radio name=c value=1>1<input type=radio name=c value=2>2<input type=radio>3<input type=radio>4</form>";
    let text = deck(page);
    let one = "<select name=\"c\" ivalue=\"2\"><option value=\"r\">Red</option><option value=\"g\">Green</option>\
        <option value=\"on\">Other</option></select>";
    let two = "<select name=\"c_3\"><option value=\"1\">1</option><option value=\"2\">2</option></select>";
    let size = "<select name=\"size\"><option value=\"on\">one</option></select>";
    for select in [one, two, size] {
        assert_eq!(text.matches(select).count(), 1, "{select}\n{text}");
    }
    // One field each, and the box's; buttons without a name are by themselves and are not sent.
    assert_eq!((text.matches("<select").count(), text.matches("<postfield").count()), (6, 4), "{text}");
    assert_eq!(text.matches("<postfield name=\"c\" value=\"$(c)\"/>").count(), 1);
}

#[test]
fn of_radio_buttons_that_are_all_checked_the_last_one_is() {
    let page =
        "<input type=radio name=c checked>a<input type=radio name=c checked>b<input type=radio name=c>d";
    assert!(
        deck(page).starts_with("<card id=\"page\">\n<p><select name=\"c\" ivalue=\"2\">"),
        "{}",
        deck(page)
    );
    // As many as a selection has, and no checked one beyond them.
    let many = "<input type=radio name=c>a".repeat(600) + "<input type=radio name=c checked>z";
    let text = deck(&many);
    assert_eq!((text.matches("<option").count(), text.contains("ivalue")), (500, false));
}

#[test]
fn fields_of_the_same_name_have_variables_of_their_own() {
    let page = "<input name=a><input name=a_2><input name=a><input name=a><input name=a_2>";
    let inputs = ["a", "a_2", "a_3", "a_4", "a_2_2"].map(|name| format!("<input name=\"{name}\"/>"));
    assert_eq!(deck(page), format!("<card id=\"page\">\n<p>{}</p>", inputs.concat()));
}

#[test]
fn a_page_full_of_fields_of_one_name_is_read_as_any_other() {
    // Were the next free name sought from the beginning each time, this would not end.
    for (field, last) in
        [("<select>", ""), ("<input name=a>", "a"), ("<form></form>", "send"), ("<input type=radio>a", "")]
    {
        let count = 1_000_000 / field.len();
        let text = markup::write(&html::convert(field.repeat(count).as_bytes(), None));
        assert!(last.is_empty() || text.contains(&format!(" name=\"{last}_{count}\"")), "{field}");
    }
}

#[test]
fn a_page_that_sends_on_has_a_timer() {
    let page = "<meta http-equiv=Refresh content='5; URL=/next'>wait";
    assert_eq!(deck(page), "<card id=\"page\" ontimer=\"/next\">\n<timer value=\"50\"/>\n<p>wait</p>");
}

#[test]
fn the_character_set_is_the_pages_own_or_guessed() {
    for page in [
        &b"<meta charset=iso-8859-2>\xE8"[..],
        b"<meta http-equiv=content-type content='text/html; charset=windows-1250'>\xE8",
        "\u{10d}".as_bytes(),
    ] {
        assert!(markup::write(&html::convert(page, None)).contains('\u{10d}'));
    }
    assert!(markup::write(&html::convert(b"\x80", None)).contains('\u{20ac}'), "windows-1252");
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn every_page_becomes_a_deck(parts in proptest::collection::vec(proptest::sample::select(&[
        "<b>", "</b>", "<p>", "</p>", "<a href='x'>", "</a>", "<a href=$y>", "text ", " ", "a", "<br>", "<h1>", "</h1>", "<pre>", "</pre>", "l\nm\n",
        "<form action=f>", "</form>", "<input name=i>", "<input type=checkbox name=i>", "<input type=submit>", "<select name=s>", "</select>",
        "<option>", "</option>", "<textarea name=t>", "</textarea>", "<ul>", "<ol>", "<li>", "</ul>", "<table>", "<td>", "<tr>", "</table>", "<title>",
        "</title>", "<script>", "</script>", "<!--", "-->", "<img alt=' i '>", "<iframe src=z>", "</iframe>", "&amp;", "$(x)", "<center>", "</center>", "<hr>", "\0", "\u{1}"
    ][..]), 0..60)) {
        let page = parts.concat();
        let document = html::convert(page.as_bytes(), None);
        let text = markup::write(&document);
        let parsed = markup::parse(text.as_bytes(), None);
        prop_assert!(parsed.is_ok(), "{page}\n{text}\n{parsed:?}");
        let parsed = parsed.expect("checked");
        prop_assert!(parsed.warnings.is_empty(), "{:?}\n{}\n{}", parsed.warnings, page, text);
let again = markup::write(&parsed.document);
        prop_assert_eq!(again, text);
    }
}
