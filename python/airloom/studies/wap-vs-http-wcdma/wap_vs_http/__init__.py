"""What the study's files cannot say: `http_side` and `wap_side` are section 5, `encoding` and `decks` section 4."""
