/*
 * The other side of `examples/sctp_peer.rs`, on usrsctp: the same messages, judged the same way, over UDP (RFC 6951).
 *
 *   peer serve ADDRESS PORT OWN-UDP PEER-UDP echo|reset|discard
 *   peer send  ADDRESS PORT OWN-UDP PEER-UDP echo|reset|discard PEER OCTETS STREAMS MESSAGE [stay]
 *
 * ADDRESS is its own: usrsctp sends from there and hears nothing else, so that loopback will not do in a laboratory.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <usrsctp.h>

enum { FRONT = 10, MOST = 65536, STREAMS = 64, MORE = 2 };

static struct {
	unsigned long messages, octets, wrong;
	unsigned next[STREAMS];
} tally;
static int echo, resets;
/* How often streams have changed (RFC 6525): ours, the peer's, all of both, more of them. Two threads look. */
static volatile struct {
	unsigned ours, theirs, all, more;
} changes;
static unsigned long expected;

static void make(unsigned char *octets, unsigned stream, unsigned number, unsigned len)
{
	uint16_t s = htons((uint16_t)stream);
	uint32_t n = htonl(number), l = htonl(len);
	memcpy(octets, &s, 2);
	memcpy(octets + 2, &n, 4);
	memcpy(octets + 6, &l, 4);
	for (unsigned i = FRONT; i < len; i++)
		octets[i] = (unsigned char)(i + stream + number);
}

static void judge(const unsigned char *octets, unsigned len, unsigned stream)
{
	static unsigned char right[MOST];
	tally.messages++;
	tally.octets += len;
	if (stream >= STREAMS || len < FRONT) {
		tally.wrong++;
		return;
	}
	make(right, stream, tally.next[stream]++, len);
	tally.wrong += memcmp(octets, right, len) != 0;
}

static int report(const char *role, int end)
{
	unsigned streams = 0;
	for (unsigned i = 0; i < STREAMS; i++)
		streams += tally.next[i] > 0;
	printf("{\"role\":\"%s\",\"messages\":%lu,\"octets\":%lu,\"streams\":%u,\"wrong\":%lu,\"changes\":[%u,%u,%u,%u],\"end\":\"%s\"}\n", role,
	       tally.messages, tally.octets, streams, tally.wrong, changes.ours, changes.theirs, changes.all, changes.more,
	       end == 0 ? "finished" : "reset");
	fflush(stdout);
	return tally.wrong != 0 || end != 0;
}

static void check(int failed, const char *what)
{
	if (failed) {
		perror(what);
		exit(2);
	}
}

static int put(struct socket *to, const unsigned char *octets, unsigned len, unsigned stream)
{
	struct sctp_sndinfo info = { .snd_sid = (uint16_t)stream };
	int sent;
	/* A stream that is about to begin anew takes nothing, of a socket that blocks too. */
	while ((sent = (int)usrsctp_sendv(to, octets, len, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0)) < 0 && errno == EAGAIN)
		usleep(1000);
	return sent;
}

static void notified(const union sctp_notification *what)
{
	unsigned flags = what->sn_strreset_event.strreset_flags;
	switch (what->sn_header.sn_type) {
	case SCTP_STREAM_RESET_EVENT:
		if (flags & (SCTP_STREAM_RESET_DENIED | SCTP_STREAM_RESET_FAILED)) {
			fprintf(stderr, "reset refused: %#x\n", flags);
			break;
		}
		if (flags & SCTP_STREAM_RESET_OUTGOING_SSN)
			changes.ours++;
		if (flags & SCTP_STREAM_RESET_INCOMING_SSN)
			changes.theirs++;
		break;
	case SCTP_ASSOC_RESET_EVENT:
		changes.all += what->sn_assocreset_event.assocreset_flags == 0;
		break;
	case SCTP_STREAM_CHANGE_EVENT:
		changes.more += what->sn_strchange_event.strchange_flags == 0;
		break;
	}
}

/* A whole message; its length, 0 at the end, negative on failure. */
static int get(struct socket *from, unsigned char *octets, unsigned *stream)
{
	unsigned have = 0;
	while (have < MOST) {
		struct sctp_rcvinfo info;
		struct sockaddr_in peer;
		socklen_t peer_len = sizeof peer, info_len = sizeof info;
		unsigned kind = 0;
		int flags = 0;
		ssize_t n = usrsctp_recvv(from, octets + have, MOST - have, (struct sockaddr *)&peer, &peer_len, &info,
					  &info_len, &kind, &flags);
		if (n <= 0)
			return (int)n;
		if (flags & MSG_NOTIFICATION) {
			notified((union sctp_notification *)(octets + have));
			continue;
		}
		have += (unsigned)n;
		*stream = info.rcv_sid;
		if (flags & MSG_EOR)
			return (int)have;
	}
	return -1;
}

static void wants_info(struct socket *of)
{
	int on = 1;
	check(usrsctp_setsockopt(of, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on), "info");
}

static void takes_changes(struct socket *of)
{
	struct sctp_assoc_value all = { .assoc_id = SCTP_FUTURE_ASSOC, .assoc_value = SCTP_ENABLE_VALUE_MASK };
	uint16_t kinds[] = { SCTP_STREAM_RESET_EVENT, SCTP_ASSOC_RESET_EVENT, SCTP_STREAM_CHANGE_EVENT };
	check(usrsctp_setsockopt(of, IPPROTO_SCTP, SCTP_ENABLE_STREAM_RESET, &all, sizeof all), "stream reset");
	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct sctp_event event = { .se_assoc_id = SCTP_FUTURE_ASSOC, .se_type = kinds[i], .se_on = 1 };
		check(usrsctp_setsockopt(of, IPPROTO_SCTP, SCTP_EVENT, &event, sizeof event), "event");
	}
}

static struct socket *make_socket(const char *address, int port, int peer_udp, unsigned out)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct sctp_initmsg streams = { .sinit_num_ostreams = (uint16_t)out, .sinit_max_instreams = STREAMS };
	struct sctp_udpencaps udp = { .sue_port = htons((uint16_t)peer_udp) };
	struct socket *made = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);

	check(made == NULL, "socket");
	wants_info(made);
	takes_changes(made);
	check(usrsctp_setsockopt(made, IPPROTO_SCTP, SCTP_INITMSG, &streams, sizeof streams), "streams");
	udp.sue_address.ss_family = AF_INET;
	check(usrsctp_setsockopt(made, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &udp, sizeof udp), "UDP port");
	check(inet_pton(AF_INET, address, &at.sin_addr) != 1, address);
	check(usrsctp_bind(made, (struct sockaddr *)&at, sizeof at), "bind");
	return made;
}

static int serve(struct socket *listening)
{
	static unsigned char octets[MOST];
	unsigned stream = 0;
	int n;

	check(usrsctp_listen(listening, 1), "listen");
	struct socket *peer = usrsctp_accept(listening, NULL, NULL);
	check(peer == NULL, "accept");
	wants_info(peer);
	while ((n = get(peer, octets, &stream)) > 0) {
		judge(octets, (unsigned)n, stream);
		if (echo)
			check(put(peer, octets, (unsigned)n, stream) < 0, "send back");
	}
	int bad = report("server", n);
	usrsctp_close(peer);
	usrsctp_close(listening);
	return bad;
}

/* Reads what comes back, so that neither side waits for the other to read. */
static void *hear(void *from)
{
	static unsigned char octets[MOST];
	unsigned stream = 0;
	int n;
	while (tally.messages < expected && (n = get(from, octets, &stream)) > 0)
		judge(octets, (unsigned)n, stream);
	return NULL;
}

/* Asks for a change as soon as the one before is done and nothing is on its way that it would have to wait for. */
static void ask(struct socket *of, int option, const void *what, size_t len)
{
	int failed = -1;
	for (int i = 0; i < 6000 && failed; i++) {
		failed = usrsctp_setsockopt(of, IPPROTO_SCTP, option, what, (socklen_t)len);
		if (failed && errno != EALREADY && errno != EBUSY && errno != EAGAIN)
			break;
		if (failed)
			usleep(10000);
	}
	check(failed, "change of streams");
}

static void ask_reset(struct socket *of, unsigned flags, unsigned count)
{
	union {
		struct sctp_reset_streams reset;
		char room[sizeof(struct sctp_reset_streams) + 2 * sizeof(uint16_t)];
	} what = { .reset = { .srs_flags = (uint16_t)flags, .srs_number_streams = (uint16_t)count } };
	for (unsigned i = 0; i < count; i++)
		what.reset.srs_stream_list[i] = (uint16_t)i;
	ask(of, SCTP_RESET_STREAMS, &what, sizeof what.reset + count * sizeof(uint16_t));
}

static void until(volatile unsigned *counter, unsigned long least)
{
	while (*counter < least)
		usleep(1000);
}

/*
 * The changes that the other program asks for too, but not before all has come back, and none of TSNs: usrsctp 0.9.5 stops
 * sending for good when it is asked to reset streams that have something to send, and takes no acknowledgements any more
 * after a reset of TSNs that it asked for, if it had sent anything twice before. Of what it is asked it does everything.
 */
static void change(struct socket *of, unsigned long half)
{
	struct sctp_add_streams more = { .sas_outstrms = MORE };
	while (*(volatile unsigned long *)&tally.messages < half)
		usleep(1000);
	ask_reset(of, SCTP_STREAM_RESET_OUTGOING, 0);
	until(&changes.ours, 1);
	ask_reset(of, SCTP_STREAM_RESET_INCOMING, 2);
	until(&changes.theirs, 1);
	ask(of, SCTP_ADD_STREAMS, &more, sizeof more);
	until(&changes.more, 1);
}

static int talk(struct socket *to, const char *address, int port, unsigned long total, unsigned streams, unsigned len)
{
	static unsigned char octets[MOST];
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	unsigned long count = (total + len - 1) / len;
	unsigned stream = 0;
	unsigned next[STREAMS] = { 0 };
	pthread_t ear;

	check(inet_pton(AF_INET, address, &at.sin_addr) != 1, address);
	check(usrsctp_connect(to, (struct sockaddr *)&at, sizeof at), "connect");
	expected = echo ? count : 0;
	check(pthread_create(&ear, NULL, hear, to), "thread");
	for (unsigned long n = 0; n < count; n++) {
		unsigned long left = total - n * len;
		unsigned size = left < len ? (unsigned)left : len;
		size = size < FRONT ? FRONT : size;
		if (resets && n == count / 2) {
			change(to, n);
			streams += MORE;
		}
		unsigned on = (unsigned)(n % streams);
		make(octets, on, next[on]++, size);
		check(put(to, octets, size, on) < 0, "send");
	}
	pthread_join(ear, NULL);
	check(usrsctp_shutdown(to, SHUT_WR), "shutdown");
	int end = get(to, octets, &stream);
	int bad = report("client", end) || tally.messages != expected;
	usrsctp_close(to);
	return bad;
}

static void quiet(const char *format, ...)
{
	(void)format;
}

int main(int argc, char **argv)
{
	int is_server = argc == 7 && !strcmp(argv[1], "serve");
	int stays = argc == 12 && !strcmp(argv[11], "stay");
	int is_client = (argc == 11 || stays) && !strcmp(argv[1], "send");
	if (!is_server && !is_client) {
		fprintf(stderr, "usage: peer serve|send ADDRESS PORT OWN-UDP PEER-UDP echo|reset|discard [PEER OCTETS STREAMS MESSAGE [stay]]\n");
		return 2;
	}
	int port = atoi(argv[3]);
	unsigned streams = is_client ? (unsigned)atoi(argv[9]) : 1, len = is_client ? (unsigned)atoi(argv[10]) : FRONT;
	if (streams < 1 || streams > STREAMS - MORE || len < FRONT || len > MOST)
		return 2;
	resets = !strcmp(argv[6], "reset");
	echo = resets || !strcmp(argv[6], "echo");
	usrsctp_init((uint16_t)atoi(argv[4]), NULL, quiet);
	/* The checksum is SCTP's own over UDP too (RFC 6951, 4.1). */
	usrsctp_sysctl_set_sctp_no_csum_on_loopback(0);
	usrsctp_sysctl_set_sctp_ecn_enable(0);
	/* Who is not there yet says nothing, and is asked again. */
	usrsctp_sysctl_set_sctp_blackhole(2);
	struct socket *own = make_socket(argv[2], is_server ? port : 0, atoi(argv[5]), is_client ? streams : STREAMS);
	int bad = is_server ? serve(own) : talk(own, argv[7], port, strtoul(argv[8], NULL, 10), streams, len);
	while (stays)
		pause();
	for (int i = 0; i < 300 && usrsctp_finish(); i++)
		usleep(10000);
	return bad;
}
