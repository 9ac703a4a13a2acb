/* The limit: what the kernel and a few hundred instructions per action allow. peer <port> bare|tick

   bare  one recv and one send per subscriber and action
   tick  actions that arrive together leave in one write per subscriber

   Like the other peers: decode the frame, check the request, the question and the kind of the answer, keep the
   answer, encode an envelope. Only what the load sends is understood. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { IN = 1 << 16, CHANNELS = 1 << 14, QUESTIONS = 10, TICK = 1 << 20 };

struct text { const char *at; size_t size; };
struct client { int fd, upgraded, waits; size_t in_size, out_size; char in[IN], *out, id[64]; };
struct channel {
  char name[128], answers[QUESTIONS][256], *tick;
  size_t tick_size;
  struct client **subscribers;
  int subscriber_count, dirty;
};

static struct channel *channels[CHANNELS], *dirty[CHANNELS];
static int epoll_fd, dirty_count, by_tick;
static uint64_t server_seq;

/* ---- JSON: just enough to walk an object ---- */

static const char *after_value(const char *at, const char *end) {
  int depth = 0;
  for (; at < end; at++) {
    if (*at == '"') {
      for (at++; at < end && *at != '"'; at++) at += *at == '\\';
    } else if (*at == '{' || *at == '[') depth++;
    else if (*at == '}' || *at == ']') { if (!depth) return at; depth--; }
    else if (*at == ',' && !depth) return at;
  }
  return end;
}

static struct text field(struct text object, const char *name) {
  const char *at = object.at + 1, *end = object.at + object.size;
  size_t size = strlen(name);
  while (at < end && *at == '"') {
    const char *key = at + 1, *quote = memchr(key, '"', end - key);
    if (!quote || quote + 2 >= end || quote[1] != ':') break;
    const char *value = quote + 2, *after = after_value(value, end);
    if ((size_t)(quote - key) == size && !memcmp(key, name, size)) return (struct text){value, after - value};
    at = after + 1;
  }
  return (struct text){NULL, 0};
}

static struct text unquoted(struct text value) {
  return value.size < 2 || *value.at != '"' ? (struct text){"", 0} : (struct text){value.at + 1, value.size - 2};
}

static int is(struct text value, const char *wanted) {
  return value.size == strlen(wanted) && !memcmp(value.at, wanted, value.size);
}

/* ---- sockets ---- */

static void drop(struct client *client) {
  for (int n = 0; n < CHANNELS; n++)
    for (int m = 0; channels[n] && m < channels[n]->subscriber_count; m++)
      if (channels[n]->subscribers[m] == client)
        channels[n]->subscribers[m--] = channels[n]->subscribers[--channels[n]->subscriber_count];
  close(client->fd);
  free(client->out);
  free(client);
}

static void wait_for_room(struct client *client, int waits) {
  struct epoll_event event = {.events = EPOLLIN | (waits ? EPOLLOUT : 0), .data.ptr = client};
  if (client->waits != waits) epoll_ctl(epoll_fd, EPOLL_CTL_MOD, client->fd, &event);
  client->waits = waits;
}

static void put(struct client *client, const char *bytes, size_t size) {
  ssize_t done = client->out_size ? 0 : send(client->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (done == (ssize_t)size || (done < 0 && errno != EAGAIN)) return;
  if (done < 0) done = 0;
  client->out = realloc(client->out, client->out_size + size - done);
  memcpy(client->out + client->out_size, bytes + done, size - done);
  client->out_size += size - done;
  wait_for_room(client, 1);
}

static void put_rest(struct client *client) {
  ssize_t done = send(client->fd, client->out, client->out_size, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (done <= 0) return;
  client->out_size -= done;
  memmove(client->out, client->out + done, client->out_size);
  if (!client->out_size) wait_for_room(client, 0);
}

static size_t framed(char *into, const char *payload, size_t size) {
  into[0] = (char)0x81;
  int head = size < 126 ? 2 : 4;
  if (head == 2) into[1] = size;
  else { into[1] = 126; into[2] = size >> 8; into[3] = size; }
  memcpy(into + head, payload, size);
  return size + head;
}

/* ---- sessions ---- */

static struct channel *channel_of(struct text name) {
  uint32_t hash = 2166136261u;
  for (size_t n = 0; n < name.size; n++) hash = (hash ^ (unsigned char)name.at[n]) * 16777619u;
  struct channel **at;
  while (*(at = &channels[hash++ % CHANNELS]))
    if (is(name, (*at)->name)) return *at;
  *at = calloc(1, sizeof **at);
  memcpy((*at)->name, name.at, name.size < 127 ? name.size : 127);
  (*at)->tick = malloc(TICK);
  return *at;
}

static void flush_ticks(void) {
  for (int n = 0; n < dirty_count; n++) {
    for (int m = 0; m < dirty[n]->subscriber_count; m++) put(dirty[n]->subscribers[m], dirty[n]->tick, dirty[n]->tick_size);
    dirty[n]->tick_size = dirty[n]->dirty = 0;
  }
  dirty_count = 0;
}

static void deliver(struct channel *channel, const char *frame, size_t size) {
  if (!by_tick) {
    for (int n = 0; n < channel->subscriber_count; n++) put(channel->subscribers[n], frame, size);
    return;
  }
  if (channel->tick_size + size > TICK) flush_ticks();
  if (!channel->dirty) { channel->dirty = 1; dirty[dirty_count++] = channel; }
  memcpy(channel->tick + channel->tick_size, frame, size);
  channel->tick_size += size;
}

static void initialize(struct client *client, struct text frame, struct text params) {
  struct text id = field(frame, "id"), name = unquoted(field(params, "clientId")), list = field(params, "initialSubscriptions");
  struct channel *channel = channel_of(unquoted((struct text){list.at + 1, list.size - 2}));
  memcpy(client->id, name.at, name.size < 63 ? name.size : 63);
  channel->subscribers = realloc(channel->subscribers, (channel->subscriber_count + 1) * sizeof client);
  channel->subscribers[channel->subscriber_count++] = client;
  char answer[200], out[220];
  int size = snprintf(answer, sizeof answer, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{}}", (int)id.size, id.at);
  put(client, out, framed(out, answer, size));
}

static void dispatch(struct client *client, struct text params) {
  struct text action = field(params, "action"), answer = field(action, "answer"), value = field(answer, "value");
  struct text name = unquoted(field(params, "channel")), request = unquoted(field(action, "requestId"));
  struct text question = unquoted(field(action, "questionId")), content = unquoted(field(value, "value"));
  struct text seq = field(params, "clientSeq");
  if (!is(unquoted(field(action, "type")), "session/inputAnswerChanged") || !is(request, "r")) return;
  if (question.size != 2 || question.at[0] != 'q' || question.at[1] < '0' || question.at[1] > '9') return;
  if (!is(unquoted(field(answer, "state")), "draft") || !is(unquoted(field(value, "kind")), "text") || content.size > 255) return;
  struct channel *channel = channel_of(name);
  char *kept = channel->answers[question.at[1] - '0'], envelope[1500], out[1504];
  memcpy(kept, content.at, content.size);
  kept[content.size] = 0;
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  unsigned long at = t.tv_sec * 1000ul + t.tv_nsec / 1000000;
  int size = snprintf(envelope, sizeof envelope,
    "{\"jsonrpc\":\"2.0\",\"method\":\"action\",\"params\":{\"channel\":\"%s\",\"action\":{\"type\":\"session/inputAnswerChanged\","
    "\"requestId\":\"r\",\"questionId\":\"%.2s\",\"answer\":{\"state\":\"draft\",\"_meta\":{\"by\":{\"id\":\"local\"},\"at\":%lu,"
    "\"via\":\"person\"},\"value\":{\"kind\":\"text\",\"value\":\"%s\"}}},\"serverSeq\":%lu,\"origin\":{\"clientId\":\"%s\",\"clientSeq\":%.*s},"
    "\"_meta\":{\"at\":%lu,\"by\":{\"id\":\"local\"}}}}",
    channel->name, question.at, at, kept, ++server_seq, client->id, (int)seq.size, seq.at, at);
  deliver(channel, out, framed(out, envelope, size));
}

/* Whether the client is still there. */
static int take(struct client *client) {
  ssize_t got = recv(client->fd, client->in + client->in_size, IN - client->in_size, MSG_DONTWAIT);
  if (got < 0 && errno == EAGAIN) return 1;
  if (got <= 0) return 0;
  client->in_size += got;
  char *at = client->in, *end = client->in + client->in_size;
  if (!client->upgraded) {
    static const char accepted[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
    char *head = memmem(at, end - at, "\r\n\r\n", 4);
    if (!head) return 1;
    put(client, accepted, sizeof accepted - 1);
    client->upgraded = 1;
    at = head + 4;
  }
  while (end - at >= 6) {
    size_t size = at[1] & 127, head = 6;
    if (size == 126) { size = (unsigned char)at[2] << 8 | (unsigned char)at[3]; head = 8; }
    if ((size_t)(end - at) < head + size) break;
    char *payload = at + head;
    for (size_t n = 0; n < size; n++) payload[n] ^= payload[(ssize_t)(n & 3) - 4];
    struct text frame = {payload, size}, method = unquoted(field(frame, "method")), params = field(frame, "params");
    if (is(method, "dispatchAction")) dispatch(client, params);
    else if (is(method, "initialize")) initialize(client, frame, params);
    at = payload + size;
  }
  client->in_size = end - at;
  memmove(client->in, at, client->in_size);
  return 1;
}

int main(int count, char **arguments) {
  if (count < 3) return 2;
  by_tick = !strcmp(arguments[2], "tick");
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(arguments[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 4096)) { perror("listen"); return 1; }
  epoll_fd = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL}, events[512];
  epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &event);
  for (;;) {
    int found = epoll_wait(epoll_fd, events, 512, -1);
    for (int n = 0; n < found; n++) {
      struct client *client = events[n].data.ptr;
      if (client) {
        if (events[n].events & EPOLLOUT) put_rest(client);
        if (events[n].events & ~EPOLLOUT && !take(client)) drop(client);
        continue;
      }
      client = calloc(1, sizeof *client);
      client->fd = accept(listener, NULL, NULL);
      setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
      event = (struct epoll_event){.events = EPOLLIN, .data.ptr = client};
      epoll_ctl(epoll_fd, EPOLL_CTL_ADD, client->fd, &event);
    }
    flush_ticks();
  }
}
