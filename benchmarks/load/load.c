/* The load generator: connects clients, sends actions, counts and times deliveries.

   It knows no protocol but WebSocket's upgrade. A script names the connections, the frames that each
   sends first with the bytes to wait for, and the frame that a writer repeats:

     c <path>                    a connection
     z <path>                    a connection that stops reading after its handshake
     s <hex frame> <hex bytes>   send the frame, then read until these bytes have come
     a <hex frame> [<kind><offset>]...
                                 this connection writes; before each send the number of the action is
                                 put at each offset: d as 8 decimal digits, v as a 4-byte varint,
                                 p the number before it as a 4-byte varint

   Each action carries a mark in its text, ^WWWW.NNNNNNNN (writer, number), which is all that is
   looked for in what comes back. Linux only; one thread; the result is one line of JSON. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { MARK = 14, RING = 1024, CHUNK = 1 << 18, BUCKETS = 64 * 64, FRAME = 1024 };
enum phase { WAITING, CONNECTING, UPGRADING, GREETING, READY, CLOSED };

struct step { char *frame, *expected; size_t frame_size, expected_size; };
struct patch { char kind; int offset; };
struct client {
  int fd, stalled, writer, step_count, step, tail_size, patch_count;
  enum phase phase;
  char *path, *seen, *frame, tail[MARK];
  size_t seen_size, frame_size;
  struct step steps[4];
  struct patch patches[8];
  uint32_t number, echoed;
  uint64_t *sent_at;
};

static struct client *clients, **writers;
static int client_count, writer_count, port, refused, lost, epoll_fd;
static uint64_t actions, deliveries, received, rejected, histogram[BUCKETS], slowest;
static char chunk[MARK + CHUNK];

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void die(const char *what) { perror(what); exit(1); }

static char *unhex(const char *text, size_t *size) {
  *size = strlen(text) / 2;
  char *bytes = malloc(*size + 1);
  for (size_t n = 0; n < *size; n++) { unsigned byte; sscanf(text + 2 * n, "%2x", &byte); bytes[n] = byte; }
  return bytes;
}

static void read_script(const char *name) {
  FILE *file = fopen(name, "r");
  if (!file) die(name);
  char *line = NULL; size_t room = 0;
  while (getline(&line, &room, file) > 0) {
    line[strcspn(line, "\n")] = 0;
    char *word = strtok(line, " "), *rest = strtok(NULL, " ");
    if (*word == 'c' || *word == 'z') {
      clients = realloc(clients, (client_count + 1) * sizeof *clients);
      clients[client_count++] = (struct client){.fd = -1, .writer = -1, .stalled = *word == 'z', .path = strdup(rest)};
      continue;
    }
    struct client *client = &clients[client_count - 1];
    if (*word == 's') {
      struct step *step = &client->steps[client->step_count++];
      step->frame = unhex(rest, &step->frame_size);
      step->expected = unhex(strtok(NULL, " "), &step->expected_size);
    } else {
      client->writer = writer_count++;
      client->frame = unhex(rest, &client->frame_size);
      client->sent_at = calloc(RING, sizeof *client->sent_at);
      for (char *patch; (patch = strtok(NULL, " "));)
        client->patches[client->patch_count++] = (struct patch){*patch, atoi(patch + 1)};
    }
  }
  fclose(file);
  writers = calloc(writer_count + 1, sizeof *writers);
  for (int n = 0; n < client_count; n++)
    if (clients[n].writer >= 0) writers[clients[n].writer] = &clients[n];
}

/* ---- connecting ---- */

static void watch(struct client *client, int operation, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = client};
  if (epoll_ctl(epoll_fd, operation, client->fd, &event)) die("epoll_ctl");
}

static void open_connection(struct client *client) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int one = 1;
  client->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (client->fd < 0) die("socket");
  setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (connect(client->fd, (struct sockaddr *)&address, sizeof address) && errno != EINPROGRESS) die("connect");
  client->phase = CONNECTING;
  watch(client, EPOLL_CTL_ADD, EPOLLOUT);
}

static void put(struct client *client, const char *bytes, size_t size) {
  while (size) {
    ssize_t done = send(client->fd, bytes, size, MSG_NOSIGNAL);
    if (done < 0 && errno != EAGAIN) return;
    if (done < 0) { struct pollfd room = {client->fd, POLLOUT, 0}; poll(&room, 1, 1000); continue; }
    bytes += done; size -= done;
  }
}

static void next_step(struct client *client) {
  free(client->seen);
  client->seen = NULL; client->seen_size = 0;
  if (client->step < client->step_count) {
    put(client, client->steps[client->step].frame, client->steps[client->step].frame_size);
    client->phase = GREETING;
    return;
  }
  client->phase = READY;
  if (client->stalled) watch(client, EPOLL_CTL_DEL, 0);
}

/* Whether the attempt is over: connected, or turned away and to be tried again. */
static int advance(struct client *client) {
  if (client->phase == CONNECTING) {
    char head[600];
    int size = snprintf(head, sizeof head,
      "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n", client->path, port);
    put(client, head, size);
    watch(client, EPOLL_CTL_MOD, EPOLLIN);
    client->phase = UPGRADING;
    return 0;
  }
  ssize_t size = recv(client->fd, chunk, CHUNK, 0);
  if (size < 0 && errno == EAGAIN) return 0;
  received += size > 0 ? size : 0;
  if (size > 0) {
    client->seen = realloc(client->seen, client->seen_size + size);
    memcpy(client->seen + client->seen_size, chunk, size);
  }
  int turned_away = size <= 0;
  if (!turned_away && client->phase == UPGRADING) {
    client->seen_size += size;
    if (!memmem(client->seen, client->seen_size, "\r\n\r\n", 4)) return 0;
    turned_away = !memmem(client->seen, client->seen_size < 16 ? client->seen_size : 16, " 101", 4);
    if (!turned_away) next_step(client);
  } else if (!turned_away) {
    struct step *step = &client->steps[client->step];
    size_t from = client->seen_size > step->expected_size ? client->seen_size - step->expected_size : 0;
    client->seen_size += size;
    if (memmem(client->seen + from, client->seen_size - from, step->expected, step->expected_size)) {
      client->step++;
      next_step(client);
    }
  }
  if (turned_away) {
    if (++refused > 20 * client_count + 100) { fprintf(stderr, "turned away: %.300s\n", client->seen ? client->seen : ""); exit(2); }
    close(client->fd);
    free(client->seen);
    client->seen = NULL; client->seen_size = 0; client->step = 0;
    client->phase = WAITING;
    usleep(1000);
    return 1;
  }
  return client->phase == READY;
}

static void connect_all(int at_once) {
  int ready = 0, under_way = 0, next = 0;
  while (ready < client_count) {
    for (; next < client_count && under_way < at_once; next++)
      if (clients[next].phase == WAITING) { open_connection(&clients[next]); under_way++; }
    struct epoll_event events[512];
    int found = epoll_wait(epoll_fd, events, 512, 60000);
    if (found == 0) { fprintf(stderr, "%d of %d connections are not answered\n", client_count - ready, client_count); exit(3); }
    for (int n = 0; n < found; n++) {
      struct client *client = events[n].data.ptr;
      if (client->phase == READY || !advance(client)) continue;
      under_way--;
      if (client->phase == READY) ready++;
      else next = 0;
    }
  }
}

/* ---- the load ---- */

static void put_varint(char *at, uint32_t value) {
  for (int n = 0; n < 4; n++, value >>= 7) at[n] = (value & 127) | (n < 3 ? 128 : 0);
}

static void number_frame(struct client *client) {
  uint32_t number = ++client->number;
  for (int n = 0; n < client->patch_count; n++) {
    char *at = client->frame + client->patches[n].offset, digits[9];
    if (client->patches[n].kind == 'd') { snprintf(digits, sizeof digits, "%08u", number); memcpy(at, digits, 8); }
    else put_varint(at, client->patches[n].kind == 'v' ? number : number - 1);
  }
}

static void send_actions(struct client *client, int count, uint64_t at) {
  static char joined[FRAME * 256];
  size_t size = 0;
  if (client->phase != READY) return;
  for (int n = 0; n < count; n++) {
    number_frame(client);
    client->sent_at[client->number % RING] = at;
    memcpy(joined + size, client->frame, client->frame_size);
    size += client->frame_size;
  }
  put(client, joined, size);
}

static void keep_time(uint64_t took) {
  int exponent = 63 - __builtin_clzll(took | 1);
  int index = exponent < 6 ? (int)took : (exponent - 5) * 64 + (int)(took >> (exponent - 6)) - 64;
  histogram[index < BUCKETS ? index : BUCKETS - 1]++;
  if (took > slowest) slowest = took;
}

static double quantile(double part) {
  uint64_t all = 0, passed = 0;
  for (int n = 0; n < BUCKETS; n++) all += histogram[n];
  for (int n = 0; n < BUCKETS; n++)
    if ((passed += histogram[n]) >= all * part && passed)
      return n < 64 ? n : (double)((uint64_t)(64 + n % 64) << (n / 64 - 1));
  return 0;
}

static uint32_t digits(const char *at, int count) {
  uint32_t value = 0;
  while (count--) value = value * 10 + (uint32_t)(*at++ - '0');
  return value;
}

static void take(struct client *client, int window) {
  memcpy(chunk, client->tail, client->tail_size);
  ssize_t size = recv(client->fd, chunk + client->tail_size, CHUNK, 0);
  if (size < 0 && errno == EAGAIN) return;
  if (size <= 0) { lost++; client->phase = CLOSED; watch(client, EPOLL_CTL_DEL, 0); return; }
  received += size;
  char *at = chunk, *end = chunk + client->tail_size + size;
  uint64_t arrived = now();
  int echoes = 0;
  if (client->writer >= 0 && memmem(at, end - at, "rejectionReason", 15)) rejected++;
  while ((at = memchr(at, '^', end - at)) && end - at >= MARK) {
    uint32_t writer = digits(at + 1, 4), number = digits(at + 6, 8);
    if (at[5] != '.' || !number || writer >= (uint32_t)writer_count) { at++; continue; }
    at += MARK;
    deliveries++;
    keep_time(arrived - writers[writer]->sent_at[number % RING]);
    if ((int)writer == client->writer) echoes++;
  }
  client->tail_size = at ? end - at : 0;
  memmove(client->tail, at ? at : end, client->tail_size);
  actions += echoes;
  if (echoes && window) send_actions(client, echoes, now());
}

/* Processor time of all threads of a process, in nanoseconds. */
static double processor_time(int pid) {
  char name[300];
  double all = 0;
  snprintf(name, sizeof name, "/proc/%d/task", pid);
  DIR *folder = opendir(name);
  if (!folder) return 0;
  for (struct dirent *entry; (entry = readdir(folder));) {
    if (*entry->d_name == '.') continue;
    snprintf(name, sizeof name, "/proc/%d/task/%.20s/schedstat", pid, entry->d_name);
    FILE *file = fopen(name, "r");
    double one = 0;
    if (!file) continue;
    if (fscanf(file, "%lf", &one) == 1) all += one;
    fclose(file);
  }
  closedir(folder);
  return all;
}

/* Closed loop: each writer keeps `window` actions in flight. Open loop: `rate` actions a second in all, in turns,
   timed from when they were due, so that a slow server cannot slow its own measurement down. It lasts until at
   least this many have come back, if they do at all. */
#define PATIENCE 300000000000ull

static void run(double seconds, int window, double rate, uint64_t least, uint64_t *sent) {
  uint64_t until = now() + seconds * 1e9, begun = now();
  for (;;) {
    uint64_t at = now(), due;
    if (at >= until && (actions >= least || at >= until + PATIENCE)) return;
    int pause = 10;
    while (rate && (due = begun + *sent * (1e9 / rate)) <= at) send_actions(writers[(*sent)++ % writer_count], 1, due);
    if (rate && due - at < 12000000) pause = (due - at) / 1000000;
    struct epoll_event events[512];
    int found = epoll_wait(epoll_fd, events, 512, pause);
    for (int n = 0; n < found; n++) take(events[n].data.ptr, window);
  }
}

static double option(int count, char **arguments, const char *name, double otherwise) {
  size_t size = strlen(name);
  for (int n = 2; n < count; n++)
    if (!strncmp(arguments[n], name, size) && arguments[n][size] == '=') return atof(arguments[n] + size + 1);
  return otherwise;
}

int main(int count, char **arguments) {
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  read_script(arguments[1]);
  port = option(count, arguments, "port", 0);
  int pid = option(count, arguments, "pid", 0), window = option(count, arguments, "window", 0);
  double seconds = option(count, arguments, "seconds", 0), rate = option(count, arguments, "rate", 0);
  double warm = option(count, arguments, "warm", 0), cpu = 0;
  struct timespec own, own_before = {0};
  epoll_fd = epoll_create1(0);
  uint64_t begun = now();
  connect_all(option(count, arguments, "at_once", 50));
  double connected = (now() - begun) / 1e9, greeted = received;
  if (seconds) {
    uint64_t sent = 0;
    for (int n = 0; window && n < writer_count; n++) send_actions(writers[n], window, now());
    run(warm, window, rate, 0, &sent);
    actions = deliveries = received = slowest = sent = 0;
    memset(histogram, 0, sizeof histogram);
    cpu = processor_time(pid);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own_before);
    begun = now();
    run(seconds, window, rate, option(count, arguments, "least", 1), &sent);
    seconds = (now() - begun) / 1e9;
    cpu = processor_time(pid) - cpu;
  }
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
  int let_go = 0;
  for (int n = 0; n < client_count; n++) {
    ssize_t size = 1;
    while (clients[n].stalled && size > 0) size = recv(clients[n].fd, chunk, CHUNK, MSG_DONTWAIT);
    let_go += clients[n].stalled && (size == 0 || errno != EAGAIN);
  }
  printf("{\"connected\":%.6f,\"greeted\":%.0f,\"refused\":%d,\"seconds\":%.6f,\"actions\":%lu,\"deliveries\":%lu,\"bytes\":%lu,"
         "\"server_cpu\":%.6f,\"generator_cpu\":%.6f,\"p50\":%.1f,\"p99\":%.1f,\"slowest\":%.1f,\"rejected\":%lu,\"lost\":%d,\"let_go\":%d}\n",
         connected, greeted, refused, seconds, actions, deliveries, received, cpu / 1e9,
         own.tv_sec - own_before.tv_sec + (own.tv_nsec - own_before.tv_nsec) / 1e9,
         quantile(0.5) / 1e3, quantile(0.99) / 1e3, slowest / 1e3, rejected, lost, let_go);
  fflush(stdout);
  if (option(count, arguments, "hold", 0))
    for (char byte; read(0, &byte, 1) > 0;) {}
  return 0;
}
