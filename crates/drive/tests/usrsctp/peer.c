/*
 * The other side of `examples/sctp_peer.rs`, on usrsctp: the same messages, judged the same way, over UDP (RFC 6951).
 *
 *   peer serve ADDRESS PORT OWN-UDP PEER-UDP echo|discard
 *   peer send  ADDRESS PORT OWN-UDP PEER-UDP echo|discard PEER OCTETS STREAMS MESSAGE
 *
 * ADDRESS is its own: usrsctp sends from there and hears nothing else, so that loopback will not do in a laboratory.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <usrsctp.h>

enum { FRONT = 10, MOST = 65536, STREAMS = 64 };

static struct {
	unsigned long messages, octets, wrong;
	unsigned next[STREAMS];
} tally;
static int echo;
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
	printf("{\"role\":\"%s\",\"messages\":%lu,\"octets\":%lu,\"streams\":%u,\"wrong\":%lu,\"end\":\"%s\"}\n", role,
	       tally.messages, tally.octets, streams, tally.wrong, end == 0 ? "finished" : "reset");
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
	return (int)usrsctp_sendv(to, octets, len, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0);
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
		if (flags & MSG_NOTIFICATION)
			continue;
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

static struct socket *make_socket(const char *address, int port, int peer_udp)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct sctp_initmsg streams = { .sinit_num_ostreams = STREAMS, .sinit_max_instreams = STREAMS };
	struct sctp_udpencaps udp = { .sue_port = htons((uint16_t)peer_udp) };
	struct socket *made = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);

	check(made == NULL, "socket");
	wants_info(made);
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

static int talk(struct socket *to, const char *address, int port, unsigned long total, unsigned streams, unsigned len)
{
	static unsigned char octets[MOST];
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	unsigned long count = (total + len - 1) / len;
	unsigned stream = 0;
	pthread_t ear;

	check(inet_pton(AF_INET, address, &at.sin_addr) != 1, address);
	check(usrsctp_connect(to, (struct sockaddr *)&at, sizeof at), "connect");
	expected = echo ? count : 0;
	check(pthread_create(&ear, NULL, hear, to), "thread");
	for (unsigned long n = 0; n < count; n++) {
		unsigned long left = total - n * len;
		unsigned size = left < len ? (unsigned)left : len;
		size = size < FRONT ? FRONT : size;
		make(octets, (unsigned)(n % streams), (unsigned)(n / streams), size);
		check(put(to, octets, size, (unsigned)(n % streams)) < 0, "send");
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
	int is_client = argc == 11 && !strcmp(argv[1], "send");
	if (!is_server && !is_client) {
		fprintf(stderr, "usage: peer serve|send ADDRESS PORT OWN-UDP PEER-UDP echo|discard [PEER OCTETS STREAMS MESSAGE]\n");
		return 2;
	}
	int port = atoi(argv[3]);
	unsigned streams = is_client ? (unsigned)atoi(argv[9]) : 1, len = is_client ? (unsigned)atoi(argv[10]) : FRONT;
	if (streams < 1 || streams > STREAMS || len < FRONT || len > MOST)
		return 2;
	echo = !strcmp(argv[6], "echo");
	usrsctp_init((uint16_t)atoi(argv[4]), NULL, quiet);
	/* The checksum is SCTP's own over UDP too (RFC 6951, 4.1). */
	usrsctp_sysctl_set_sctp_no_csum_on_loopback(0);
	usrsctp_sysctl_set_sctp_ecn_enable(0);
	/* Who is not there yet says nothing, and is asked again. */
	usrsctp_sysctl_set_sctp_blackhole(2);
	struct socket *own = make_socket(argv[2], is_server ? port : 0, atoi(argv[5]));
	int bad = is_server ? serve(own) : talk(own, argv[7], port, strtoul(argv[8], NULL, 10), streams, len);
	for (int i = 0; i < 300 && usrsctp_finish(); i++)
		usleep(10000);
	return bad;
}
