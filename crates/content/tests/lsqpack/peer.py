"""ls-qpack (pylsqpack) at the other end of a pipe: a line is a command, a line the answer, octets are hexadecimal.

settings CAPACITY BLOCKED                    a new encoder and decoder; what the encoder stream begins with
decode STREAM INSTRUCTIONS SECTION LATE      reads one, before its instructions if LATE: decoder stream, lines
encode STREAM NAME VALUE ..                  writes one: encoder stream, section
answer INSTRUCTIONS                          octets of the decoder stream
"""

import sys

import pylsqpack

encoder, decoder = pylsqpack.Encoder(), pylsqpack.Decoder(0, 0)
for line in sys.stdin:
    # An empty string is a minus.
    command, *words = (word.replace("-", "") for word in line.split(" "))
    words = [word.strip() for word in words]
    said: list[bytes] = []
    if command == "settings":
        capacity, blocked = map(int, words)
        encoder, decoder = pylsqpack.Encoder(), pylsqpack.Decoder(capacity, blocked)
        said = [encoder.apply_settings(capacity, blocked)]
    elif command == "decode":
        stream, instructions, section = int(words[0]), bytes.fromhex(words[1]), bytes.fromhex(words[2])
        if words[3] == "0":
            decoder.feed_encoder(instructions)
        try:
            told, lines = decoder.feed_header(stream, section)
        except pylsqpack.StreamBlocked:
            if stream not in decoder.feed_encoder(instructions):
                raise
            told, lines = decoder.resume_header(stream)
        else:
            if words[3] == "1":
                decoder.feed_encoder(instructions)
        said = [told, *(part for pair in lines for part in pair)]
    elif command == "encode":
        parts = [bytes.fromhex(word) for word in words[1:]]
        said = list(encoder.encode(int(words[0]), list(zip(parts[::2], parts[1::2], strict=True))))
    elif command == "answer":
        encoder.feed_decoder(bytes.fromhex(words[0]))
    print(" ".join(octets.hex() or "-" for octets in said), flush=True)
