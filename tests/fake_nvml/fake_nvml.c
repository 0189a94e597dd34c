/* Fake libnvidia-ml.so.1: answers the NVML C API from a text file that a test rewrites while callers run.
 *   cc -shared -fPIC -O2 -Wall -Wextra -Werror -fvisibility=hidden -pthread -Wl,-soname,libnvidia-ml.so.1 -o libnvidia-ml.so.1 fake_nvml.c
 * FAKE_NVML_STATE = path of the state file ("key = value" lines; write a temporary file, then rename over it)
 * FAKE_NVML_LOG   = optional path; one "pid fn gpu mig" line is appended per call
 * Keys: driver nvml cuda count serialize fork_unsafe | gpuN.KEY, gpu*.KEY (default for all) | gpuN.migM.KEY (never inherits)
 *   err.FN / err.* , delay_ms.FN / delay_ms.*   global, or behind gpuN. / gpu*. / gpuN.migM.
 *   delay_ms: >=0 sleeps; -1 blocks till the key changes; -2 blocks in uninterruptible sleep (state D) for good
 *   a value "!CODE" makes that one answer fail with NVML error CODE; an absent key answers NOT_SUPPORTED
 *   event.SEQ = gpu=0 xid=79 [type=8] [gi=..] [ci=..]     delivered once per event set, in order of SEQ
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
enum { OK = 0, UNINIT = 1, INVAL = 2, NOTSUP = 3, NOTFOUND = 6, TOOSMALL = 7, NODRIVER = 9, TIMEOUT = 10, VERSION = 25 };
typedef int R; typedef unsigned u32; typedef unsigned long long u64;
enum { MAXG = 32, MAXM = 8, MAXKV = 8192, PROCS_TEXT = 16384 };
typedef struct { int gpu, mig; } D;                               /* mig == -1: the whole GPU */
static D devs[MAXG][1 + MAXM];

/* ---- layouts as nvml.h and pynvml have them (x86-64, natural alignment) ---- */
typedef struct { char legacy[16]; u32 domain, bus, device, id, subsys; char busId[32]; } Pci;
typedef struct { u64 total, free, used; } Mem1;
typedef struct { u32 version; u64 total, reserved, free, used; } Mem2;
typedef struct { u32 gpu, memory; } Util;
typedef struct { u32 pid; u64 mem; u32 gi, ci; } Proc;            /* _v2 and _v3 alike */
typedef struct { D *dev; u64 type, data; u32 gi, ci; } Event;
typedef struct { u32 version; uint8_t uuid[16]; u32 status, clique, state, mask; uint8_t summary; } Fabric;  /* v3 */
typedef struct { u32 field, scope; int64_t ts, lat; u32 type; R ret; union { double d; u64 u; } v; } Field;
typedef struct { u32 sm, ce, dec, enc, jpg, ofa, giSlices, ciSlices; u64 memMB; } Attr;
typedef struct { u32 version, sensor; int temp; } TempV;
typedef struct { D *dev; u32 id, profile, start, size; } GpuInstance;
_Static_assert(sizeof(Pci) == 68 && sizeof(Mem1) == 24 && sizeof(Mem2) == 40 && sizeof(Proc) == 24, "layout");
_Static_assert(sizeof(Event) == 32 && sizeof(Fabric) == 40 && sizeof(Field) == 40 && sizeof(Attr) == 40 && sizeof(TempV) == 12 && sizeof(GpuInstance) == 24, "layout");

/* ---- state file ---- */
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER, big = PTHREAD_MUTEX_INITIALIZER;
static struct { char *k, *v; } kv[MAXKV];
static int nkv, present, refs; static pid_t owner;
static char *text; static struct stat seen; static int held = -1; /* held open: its inode number can't be reused, so a rename is always seen */

static char *trim(char *s) {
    while (isspace((unsigned char)*s)) s++;
    for (char *e = s + strlen(s); e > s && isspace((unsigned char)e[-1]);) *--e = 0;
    return s;
}
static void reload(void) {                                        /* caller holds mu */
    const char *path = getenv("FAKE_NVML_STATE"); struct stat st;
    if (!path || stat(path, &st)) { present = nkv = 0; memset(&seen, 0, sizeof seen); return; }
    if (present && st.st_ino == seen.st_ino && st.st_size == seen.st_size && !memcmp(&st.st_mtim, &seen.st_mtim, sizeof st.st_mtim)) return;
    int fd = open(path, O_RDONLY | O_CLOEXEC); if (fd < 0) return;
    fstat(fd, &st); free(text); text = calloc(1, (size_t)st.st_size + 1);
    ssize_t n = read(fd, text, (size_t)st.st_size); (void)n;
    if (held >= 0) close(held);
    held = fd;
    nkv = 0; seen = st; present = 1;
    for (char *save, *l = strtok_r(text, "\n", &save); l && nkv < MAXKV; l = strtok_r(NULL, "\n", &save)) {
        char *eq = strchr(l, '='); l = trim(l);
        if (*l == '#' || !eq) continue;
        *eq = 0; kv[nkv].k = trim(l); kv[nkv++].v = trim(eq + 1);
    }
}
static int raw(char *out, size_t n, const char *key) {            /* the last line with that key wins */
    int found = 0; pthread_mutex_lock(&mu);
    for (int i = nkv; i-- > 0 && !found;) if (!strcmp(kv[i].k, key)) { snprintf(out, n, "%s", kv[i].v); found = 1; }
    pthread_mutex_unlock(&mu); return found;
}
static void refresh(void) { pthread_mutex_lock(&mu); reload(); pthread_mutex_unlock(&mu); }
static int lookup(D *d, char *out, size_t n, const char *key) {
    char k[256];
    if (!d) return raw(out, n, key);
    if (d->mig >= 0) { snprintf(k, sizeof k, "gpu%d.mig%d.%s", d->gpu, d->mig, key); return raw(out, n, k); }
    snprintf(k, sizeof k, "gpu%d.%s", d->gpu, key);
    if (raw(out, n, k)) return 1;
    snprintf(k, sizeof k, "gpu*.%s", key); return raw(out, n, k);
}
static int knob(D *d, const char *kind, const char *fn, long *v) { /* the most specific of err/delay_ms keys */
    char k[160], b[64]; D whole = { d ? d->gpu : 0, -1 };
    D *scopes[3] = { d, d && d->mig >= 0 ? &whole : NULL, NULL };
    for (int s = 0; s < 3; s++) for (int w = 0; w < 2; w++) {
        if (s < 2 && !scopes[s]) continue;
        snprintf(k, sizeof k, "%s.%s", kind, w ? "*" : fn);
        if (lookup(scopes[s], b, sizeof b, k)) { *v = strtol(b, NULL, 0); return 1; }
    }
    return 0;
}
static void msleep(long ms) { struct timespec t = { ms / 1000, ms % 1000 * 1000000L }; nanosleep(&t, NULL); }
static int num_key(const char *key, int dflt) { char b[64]; return raw(b, sizeof b, key) ? (int)strtol(b, NULL, 0) : dflt; }
static int count(void) { int c = num_key("count", 0); return c < 0 ? 0 : c > MAXG ? MAXG : c; }
static int valid(D *d) {
    uintptr_t p = (uintptr_t)d, a = (uintptr_t)devs;
    return p >= a && p < a + sizeof devs && (p - a) % sizeof(D) == 0 && d->gpu < count();
}
static R enter(D *d, const char *fn, int need_dev) {               /* log, delay or hang, then injected errors */
    const char *log = getenv("FAKE_NVML_LOG"); long v;
    refresh();
    if (need_dev && !valid(d)) return refs ? INVAL : UNINIT;
    if (log) {
        char line[160]; int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        int n = snprintf(line, sizeof line, "%d %s %d %d\n", (int)getpid(), fn, d ? d->gpu : -1, d ? d->mig : -1);
        if (fd >= 0) { if (write(fd, line, (size_t)n) < 0) {} close(fd); }
    }
    int ser = num_key("serialize", 0);                              /* 1: one wedged call blocks the whole library */
    if (ser) pthread_mutex_lock(&big);
    if (knob(d, "delay_ms", fn, &v)) {
        if (v > 0) msleep(v);
        while (v == -1) { msleep(5); refresh(); if (!knob(d, "delay_ms", fn, &v)) break; }
        if (v == -2 && vfork() == 0) { prctl(PR_SET_PDEATHSIG, SIGKILL); for (;;) pause(); }
    }
    if (ser) pthread_mutex_unlock(&big);
    if (!present) return NODRIVER;
    if (knob(d, "err", fn, &v) && v) return (R)v;
    if (owner != getpid() && num_key("fork_unsafe", 0)) refs = 0;   /* NVML state is not inherited over fork */
    return refs || !strncmp(fn, "nvmlInit", 8) ? OK : UNINIT;
}
static R str(D *d, const char *key, char *b, size_t n) {
    char t[PROCS_TEXT];
    if (!lookup(d, t, sizeof t, key)) return NOTSUP;
    if (*t == '!') return atoi(t + 1);
    if (strlen(t) + 1 > n) return TOOSMALL;
    strcpy(b, t); return OK;
}
static R num(D *d, u64 *o, const char *fmt, ...) {
    char k[128], b[256]; va_list ap; va_start(ap, fmt); vsnprintf(k, sizeof k, fmt, ap); va_end(ap);
    R r = str(d, k, b, sizeof b); if (!r) *o = strtoull(b, NULL, 0);
    return r;
}
static u64 opt(D *d, const char *key, u64 dflt) { u64 v; return num(d, &v, "%s", key) ? dflt : v; }
#define ENTER(d) do { R r_ = enter((d), __func__, 1); if (r_) return r_; } while (0)
#define ENTER0() do { R r_ = enter(NULL, __func__, 0); if (r_) return r_; } while (0)
#define TRY(x) do { R r_ = (x); if (r_) return r_; } while (0)
#define U32(FN, KEY) API R FN(D *d, u32 *o) { u64 v; if (!o) return INVAL; ENTER(d); TRY(num(d, &v, KEY)); *o = (u32)v; return OK; }
#define U64(FN, KEY) API R FN(D *d, u64 *o) { if (!o) return INVAL; ENTER(d); return num(d, o, KEY); }
#define STR(FN, KEY) API R FN(D *d, char *b, u32 n) { if (!b) return INVAL; ENTER(d); return str(d, KEY, b, n); }
#define SYS(FN, KEY) API R FN(char *b, u32 n) { if (!b) return INVAL; ENTER0(); return str(NULL, KEY, b, n); }
#define PAIR(FN, K1, K2) API R FN(D *d, u32 *a, u32 *b) { u64 x, y; if (!a || !b) return INVAL; ENTER(d); TRY(num(d, &x, K1)); TRY(num(d, &y, K2)); *a = (u32)x; *b = (u32)y; return OK; }
/* getters with one enum argument: key.ARG */
#define ARG32(FN, KEY) API R FN(D *d, u32 a, u32 *o) { u64 v; if (!o) return INVAL; ENTER(d); TRY(num(d, &v, KEY ".%u", a)); *o = (u32)v; return OK; }

/* ---- library ---- */
__attribute__((constructor)) static void init_devs(void) { for (int g = 0; g < MAXG; g++) for (int m = 0; m <= MAXM; m++) devs[g][m] = (D){ g, m - 1 }; }
API R nvmlInitWithFlags(u32 f) { (void)f; ENTER0(); owner = getpid(); __sync_fetch_and_add(&refs, 1); return OK; }  /* pynvml calls this one */
API R nvmlInit_v2(void) { ENTER0(); owner = getpid(); __sync_fetch_and_add(&refs, 1); return OK; }
API R nvmlShutdown(void) { ENTER0(); __sync_fetch_and_sub(&refs, 1); return OK; }
API const char *nvmlErrorString(R r) { static __thread char b[32]; snprintf(b, sizeof b, "fake NVML error %d", r); return b; }
SYS(nvmlSystemGetDriverVersion, "driver")
SYS(nvmlSystemGetNVMLVersion, "nvml")
API R nvmlSystemGetCudaDriverVersion_v2(int *v) { u64 x; ENTER0(); TRY(num(NULL, &x, "cuda")); *v = (int)x; return OK; }
API R nvmlSystemGetCudaDriverVersion(int *v) { u64 x; ENTER0(); TRY(num(NULL, &x, "cuda")); *v = (int)x; return OK; }
API R nvmlDeviceGetCount_v2(u32 *n) { if (!n) return INVAL; ENTER0(); *n = (u32)count(); return OK; }

/* ---- handles ---- */
API R nvmlDeviceGetHandleByIndex_v2(u32 i, D **o) { if (!o) return INVAL; ENTER0(); if (i >= (u32)count()) return INVAL; ENTER(&devs[i][0]); *o = &devs[i][0]; return OK; }
API R nvmlDeviceGetHandleByUUID(const char *uuid, D **o) {
    char b[96]; if (!uuid || !o) return INVAL; ENTER0();
    for (int g = 0; g < count(); g++) for (int m = 0; m <= MAXM; m++)
        if (!str(&devs[g][m], "uuid", b, sizeof b) && !strcmp(b, uuid)) { ENTER(&devs[g][m]); *o = &devs[g][m]; return OK; }
    return NOTFOUND;
}
static int bdf(const char *s, u32 o[4]) { return sscanf(s, "%x:%x:%x.%x", o, o + 1, o + 2, o + 3) == 4; }
API R nvmlDeviceGetHandleByPciBusId_v2(const char *id, D **o) {   /* 4- or 8-digit domain, either case */
    char b[64]; u32 x[4], y[4]; if (!id || !o || !bdf(id, x)) return INVAL; ENTER0();
    for (int g = 0; g < count(); g++)
        if (!str(&devs[g][0], "pci", b, sizeof b) && bdf(b, y) && !memcmp(x, y, sizeof x)) { ENTER(&devs[g][0]); *o = &devs[g][0]; return OK; }
    return NOTFOUND;
}
API R nvmlDeviceGetIndex(D *d, u32 *o) { if (!o) return INVAL; ENTER(d); *o = (u32)(d->mig < 0 ? d->gpu : d->mig); return OK; }
static R pci(D *d, const char *key, Pci *o) {
    char b[64]; u32 x[4]; TRY(str(d, key, b, sizeof b)); if (!bdf(b, x)) return 999;
    memset(o, 0, sizeof *o); o->domain = x[0]; o->bus = x[1]; o->device = x[2];
    o->id = (u32)opt(d, "pci_device_id", 0x233010de); o->subsys = (u32)opt(d, "pci_subsystem_id", 0);
    snprintf(o->legacy, sizeof o->legacy, "%04X:%02X:%02X.0", x[0] & 0xffff, x[1] & 0xff, x[2] & 0xff);
    snprintf(o->busId, sizeof o->busId, "%08X:%02X:%02X.0", x[0], x[1] & 0xff, x[2] & 0xff); return OK;
}
API R nvmlDeviceGetPciInfo_v3(D *d, Pci *o) { if (!o) return INVAL; ENTER(d); return pci(d, "pci", o); }
STR(nvmlDeviceGetName, "name") STR(nvmlDeviceGetUUID, "uuid") STR(nvmlDeviceGetSerial, "serial") STR(nvmlDeviceGetVbiosVersion, "vbios")
U32(nvmlDeviceGetMinorNumber, "minor") U32(nvmlDeviceGetArchitecture, "arch") U32(nvmlDeviceGetBrand, "brand")
PAIR(nvmlDeviceGetCudaComputeCapability, "cc_major", "cc_minor")

/* ---- load, memory, temperature, power, clocks ---- */
API R nvmlDeviceGetMemoryInfo(D *d, Mem1 *o) { if (!o) return INVAL; ENTER(d); TRY(num(d, &o->total, "mem_total")); TRY(num(d, &o->used, "mem_used")); o->used += opt(d, "mem_reserved", 0); o->free = o->total - o->used; return OK; }
API R nvmlDeviceGetMemoryInfo_v2(D *d, Mem2 *o) { if (!o) return INVAL; if (o->version != (sizeof *o | 2u << 24)) return VERSION; ENTER(d); TRY(num(d, &o->total, "mem_total")); TRY(num(d, &o->used, "mem_used")); o->reserved = opt(d, "mem_reserved", 0); o->free = o->total - o->used - o->reserved; return OK; }
API R nvmlDeviceGetBAR1MemoryInfo(D *d, Mem1 *o) { if (!o) return INVAL; ENTER(d); TRY(num(d, &o->total, "bar1_total")); o->used = opt(d, "bar1_used", 0); o->free = o->total - o->used; return OK; }
API R nvmlDeviceGetUtilizationRates(D *d, Util *o) { u64 a, b; if (!o) return INVAL; ENTER(d); TRY(num(d, &a, "util_gpu")); TRY(num(d, &b, "util_mem")); *o = (Util){ (u32)a, (u32)b }; return OK; }
API R nvmlDeviceGetTemperature(D *d, u32 s, u32 *o) { u64 v; if (!o || s) return INVAL; ENTER(d); TRY(num(d, &v, "temp")); *o = (u32)v; return OK; }
API R nvmlDeviceGetTemperatureV(D *d, TempV *o) { u64 v; if (!o) return INVAL; if (o->version != (sizeof *o | 1u << 24)) return VERSION; ENTER(d); TRY(num(d, &v, "temp")); o->temp = (int)v; return OK; }
ARG32(nvmlDeviceGetTemperatureThreshold, "temp_threshold") ARG32(nvmlDeviceGetClockInfo, "clock") ARG32(nvmlDeviceGetMaxClockInfo, "max_clock")
U32(nvmlDeviceGetPowerUsage, "power_mw") U32(nvmlDeviceGetEnforcedPowerLimit, "power_limit_mw") U32(nvmlDeviceGetPowerManagementLimit, "power_limit_mw")
U64(nvmlDeviceGetTotalEnergyConsumption, "energy_mj") U32(nvmlDeviceGetPerformanceState, "pstate") U32(nvmlDeviceGetPersistenceMode, "persistence") U32(nvmlDeviceGetFanSpeed, "fan")
U64(nvmlDeviceGetCurrentClocksThrottleReasons, "throttle") U64(nvmlDeviceGetCurrentClocksEventReasons, "throttle")
U32(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_gen") U32(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width") U32(nvmlDeviceGetPcieReplayCounter, "pcie_replay") ARG32(nvmlDeviceGetPcieThroughput, "pcie_kbps")

/* ---- memory health ---- */
PAIR(nvmlDeviceGetEccMode, "ecc", "ecc_pending")
API R nvmlDeviceGetTotalEccErrors(D *d, u32 err, u32 cnt, u64 *o) { if (!o || err > 1 || cnt > 1) return INVAL; ENTER(d); return num(d, o, "ecc_%s_%s", err ? "unc" : "cor", cnt ? "agg" : "vol"); }
API R nvmlDeviceGetMemoryErrorCounter(D *d, u32 err, u32 cnt, u32 loc, u64 *o) { if (!o || err > 1 || cnt > 1) return INVAL; ENTER(d); return num(d, o, "ecc_%s_%s.%u", err ? "unc" : "cor", cnt ? "agg" : "vol", loc); }
API R nvmlDeviceGetRetiredPages(D *d, u32 cause, u32 *n, u64 *pages) {
    char k[32], b[1024]; if (!n) return INVAL; ENTER(d);
    snprintf(k, sizeof k, "retired.%u", cause); TRY(str(d, k, b, sizeof b));
    u32 room = *n, c = 0;
    for (char *s, *t = strtok_r(b, ", ", &s); t; t = strtok_r(NULL, ", ", &s), c++) if (pages && c < room) pages[c] = strtoull(t, NULL, 0);
    *n = c; return c > room || (c && !pages) ? TOOSMALL : OK;
}
U32(nvmlDeviceGetRetiredPagesPendingStatus, "retired_pending")
API R nvmlDeviceGetRemappedRows(D *d, u32 *c, u32 *u, u32 *p, u32 *f) {
    u64 v[4]; ENTER(d); if (opt(d, "mig_count", 0)) return NOTSUP;     /* as documented: not with MIG instances */
    TRY(num(d, v, "remap_cor")); TRY(num(d, v + 1, "remap_unc")); TRY(num(d, v + 2, "remap_pending")); TRY(num(d, v + 3, "remap_failed"));
    *c = (u32)v[0]; *u = (u32)v[1]; *p = (u32)v[2]; *f = (u32)v[3]; return OK;
}
API R nvmlDeviceGetRowRemapperHistogram(D *d, u32 o[5]) { u64 v; ENTER(d); for (u32 i = 0; i < 5; i++) { TRY(num(d, &v, "remap_hist.%u", i)); o[i] = (u32)v; } return OK; }

/* ---- MIG ---- */
PAIR(nvmlDeviceGetMigMode, "mig", "mig_pending") U32(nvmlDeviceGetMaxMigDeviceCount, "mig_max")
API R nvmlDeviceGetMigDeviceHandleByIndex(D *d, u32 i, D **o) { char b[96]; if (!o || i >= MAXM) return INVAL; ENTER(d); if (d->mig >= 0) return INVAL; if (str(&devs[d->gpu][1 + i], "uuid", b, sizeof b)) return NOTFOUND; *o = &devs[d->gpu][1 + i]; return OK; }
API R nvmlDeviceIsMigDeviceHandle(D *d, u32 *o) { if (!o) return INVAL; ENTER(d); *o = d->mig >= 0; return OK; }
API R nvmlDeviceGetDeviceHandleFromMigDeviceHandle(D *d, D **o) { if (!o) return INVAL; ENTER(d); if (d->mig < 0) return INVAL; *o = &devs[d->gpu][0]; return OK; }
U32(nvmlDeviceGetGpuInstanceId, "gi") U32(nvmlDeviceGetComputeInstanceId, "ci")
API R nvmlDeviceGetGpuInstanceById(D *d, u32 id, D **o) {             /* the MIG device that names this instance stands for it */
    u64 v; if (!o) return INVAL; ENTER(d); if (d->mig >= 0) return INVAL;
    for (int m = 1; m <= MAXM; m++) if (!num(&devs[d->gpu][m], &v, "gi") && v == id) { *o = &devs[d->gpu][m]; return OK; }
    return NOTFOUND;
}
API R nvmlGpuInstanceGetInfo(D *i, GpuInstance *o) {                  /* placement = profile,start,size */
    char b[64]; u64 id; if (!o) return INVAL; ENTER(i); TRY(str(i, "placement", b, sizeof b)); TRY(num(i, &id, "gi"));
    o->dev = &devs[i->gpu][0]; o->id = (u32)id;
    return sscanf(b, "%u,%u,%u", &o->profile, &o->start, &o->size) == 3 ? OK : 999;
}
API R nvmlDeviceGetAttributes_v2(D *d, Attr *o) {                     /* attr = sm,ce,dec,enc,jpg,ofa,giSlices,ciSlices,memMB */
    char b[256]; if (!o) return INVAL; ENTER(d); TRY(str(d, "attr", b, sizeof b)); memset(o, 0, sizeof *o);
    return sscanf(b, "%u,%u,%u,%u,%u,%u,%u,%u,%llu", &o->sm, &o->ce, &o->dec, &o->enc, &o->jpg, &o->ofa, &o->giSlices, &o->ciSlices, &o->memMB) == 9 ? OK : 999;
}

/* ---- processes: procs = pid:bytes[:gi:ci],... ; bytes "-" = NVML_VALUE_NOT_AVAILABLE ---- */
static R procs(D *d, const char *key, u32 *n, Proc *o) {
    char b[PROCS_TEXT]; R r = str(d, key, b, sizeof b); u32 room = *n, c = 0;
    if (r) { if (r == NOTSUP) { *n = 0; return OK; } return r; }
    for (char *s, *t = strtok_r(b, ", ", &s); t; t = strtok_r(NULL, ", ", &s), c++) if (o && c < room) {
        char m[32] = "-"; Proc p = { 0, ~0ull, ~0u, ~0u }; sscanf(t, "%u:%31[^:]:%u:%u", &p.pid, m, &p.gi, &p.ci);
        if (*m != '-') p.mem = strtoull(m, NULL, 0);
        o[c] = p;
    }
    *n = c; return c > room || (c && !o) ? TOOSMALL : OK;            /* SUCCESS here with count > 0 would read as "none" in pynvml */
}
#define PROCS(FN, KEY) API R FN(D *d, u32 *n, Proc *o) { if (!n) return INVAL; ENTER(d); return procs(d, KEY, n, o); }
PROCS(nvmlDeviceGetComputeRunningProcesses_v3, "procs") PROCS(nvmlDeviceGetComputeRunningProcesses_v2, "procs")
PROCS(nvmlDeviceGetGraphicsRunningProcesses_v3, "gprocs") PROCS(nvmlDeviceGetMPSComputeRunningProcesses_v3, "mprocs")

/* ---- links and topology ---- */
ARG32(nvmlDeviceGetNvLinkState, "nvlink_state") ARG32(nvmlDeviceGetNvLinkVersion, "nvlink_version") ARG32(nvmlDeviceGetNvLinkRemoteDeviceType, "nvlink_type")
API R nvmlDeviceGetNvLinkRemotePciInfo_v2(D *d, u32 l, Pci *o) { char k[32]; if (!o) return INVAL; ENTER(d); snprintf(k, sizeof k, "nvlink_pci.%u", l); return pci(d, k, o); }
API R nvmlDeviceGetNvLinkErrorCounter(D *d, u32 l, u32 c, u64 *o) { if (!o) return INVAL; ENTER(d); return num(d, o, "nvlink_err.%u.%u", l, c); }
static R between(D *a, D *b, const char *what, u32 dflt, u32 *o) { u64 v; char k[48]; int x = a->gpu, y = b->gpu; snprintf(k, sizeof k, "%s.%d.%d", what, x < y ? x : y, x < y ? y : x); R r = num(NULL, &v, "%s", k); if (r && r != NOTSUP) return r; *o = r ? dflt : (u32)v; return OK; }
API R nvmlDeviceGetTopologyCommonAncestor(D *a, D *b, u32 *o) { if (!o || !valid(b)) return INVAL; ENTER(a); return between(a, b, "topo", 50, o); }
API R nvmlDeviceGetP2PStatus(D *a, D *b, u32 i, u32 *o) { (void)i; if (!o || !valid(b)) return INVAL; ENTER(a); return between(a, b, "p2p", 5, o); }
U32(nvmlDeviceGetNumaNodeId, "numa")
static R mask(D *d, const char *key, u32 n, unsigned long *o) { char b[512]; TRY(str(d, key, b, sizeof b)); memset(o, 0, n * sizeof *o); u32 i = 0; for (char *s, *t = strtok_r(b, ", ", &s); t && i < n; t = strtok_r(NULL, ", ", &s)) o[i++] = strtoul(t, NULL, 0); return OK; }
API R nvmlDeviceGetCpuAffinity(D *d, u32 n, unsigned long *o) { if (!o) return INVAL; ENTER(d); return mask(d, "cpus", n, o); }
API R nvmlDeviceGetMemoryAffinity(D *d, u32 n, unsigned long *o, u32 s) { (void)s; if (!o) return INVAL; ENTER(d); return mask(d, "mems", n, o); }
static R fabric(D *d, Fabric *o) {                                   /* fills everything behind .version */
    char b[64]; u64 v; TRY(num(d, &v, "fabric_state")); o->state = (u32)v; o->status = (u32)opt(d, "fabric_status", 0); o->clique = (u32)opt(d, "fabric_clique", 0);
    o->mask = (u32)opt(d, "fabric_health", 0); o->summary = (uint8_t)opt(d, "fabric_summary", 0); memset(o->uuid, 0, 16);
    if (!str(d, "fabric_uuid", b, sizeof b)) for (char *c = b, i = 0; *c && i < 32; c++) if (isxdigit((unsigned char)*c)) { o->uuid[i / 2] = (uint8_t)(o->uuid[i / 2] << 4 | (isdigit((unsigned char)*c) ? *c - '0' : tolower(*c) - 'a' + 10)); i++; }
    return OK;
}
API R nvmlDeviceGetGpuFabricInfo(D *d, void *o) { Fabric f; if (!o) return INVAL; ENTER(d); TRY(fabric(d, &f)); memcpy(o, f.uuid, 28); return OK; }
API R nvmlDeviceGetGpuFabricInfoV(D *d, Fabric *o) { Fabric f; if (!o) return INVAL; u32 v = o->version, n = v & 0xffffff; if (v != 0x02000024 && v != 0x03000028) return VERSION; ENTER(d); TRY(fabric(d, &f)); f.version = v; memcpy(o, &f, n); return OK; }
API R nvmlDeviceGetFieldValues(D *d, int n, Field *f) {              /* field.ID[.SCOPE], always as unsigned long long */
    struct timespec t; clock_gettime(CLOCK_REALTIME, &t);
    if (!f || n <= 0) return INVAL;
    ENTER(d);
    for (int i = 0; i < n; i++) { u64 v = 0; R r = num(d, &v, "field.%u.%u", f[i].field, f[i].scope); if (r == NOTSUP) r = num(d, &v, "field.%u", f[i].field);
        f[i].ret = r; f[i].type = 3; f[i].v.u = v; f[i].lat = 0; f[i].ts = t.tv_sec * 1000000LL + t.tv_nsec / 1000; }
    return OK;
}

/* ---- events ---- */
typedef struct { u64 want[MAXG]; long last[MAXG], done; } Set;
static int next_event(Set *s, long *best, Event *e) {                 /* the lowest undelivered SEQ the set registered for */
    int found = 0; pthread_mutex_lock(&mu);
    for (int i = 0; i < nkv; i++) {
        if (strncmp(kv[i].k, "event.", 6)) continue;
        long q = strtol(kv[i].k + 6, NULL, 10); char *p, *v = kv[i].v;
        int g = (p = strstr(v, "gpu=")) ? atoi(p + 4) : 0; u64 type = (p = strstr(v, "type=")) ? strtoull(p + 5, NULL, 0) : 8;
        if (!s) { if (q > *best) *best = q; continue; }
        if (g < 0 || g >= MAXG || !(s->want[g] & type) || q <= s->last[g] || q <= s->done || (found && q >= *best)) continue;
        found = 1; *best = q;
        *e = (Event){ &devs[g][0], type, (p = strstr(v, "xid=")) ? strtoull(p + 4, NULL, 0) : 0, (p = strstr(v, "gi=")) ? (u32)strtoul(p + 3, NULL, 0) : ~0u, (p = strstr(v, "ci=")) ? (u32)strtoul(p + 3, NULL, 0) : ~0u };
    }
    pthread_mutex_unlock(&mu); return found;
}
U64(nvmlDeviceGetSupportedEventTypes, "event_types")
API R nvmlEventSetCreate(Set **s) { if (!s) return INVAL; ENTER0(); return (*s = calloc(1, sizeof **s)) ? OK : 20; }
API R nvmlDeviceRegisterEvents(D *d, u64 types, Set *s) { u64 sup; long top = 0; if (!s) return INVAL; ENTER(d); if (num(d, &sup, "event_types") || (types & ~sup)) return NOTSUP; next_event(NULL, &top, NULL); s->want[d->gpu] |= types; s->last[d->gpu] = top; return OK; }
API R nvmlEventSetWait_v2(Set *s, Event *e, u32 ms) {
    struct timespec a, b; long q = 0, err; if (!s || !e) return INVAL;
    ENTER0(); clock_gettime(CLOCK_MONOTONIC, &a);
    for (;;) {
        refresh();
        if (knob(NULL, "err", __func__, &err) && err) return (R)err;
        if (next_event(s, &q, e)) { s->done = q; return OK; }
        clock_gettime(CLOCK_MONOTONIC, &b); long gone = (b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000;
        if (gone >= (long)ms) return TIMEOUT;
        msleep((long)ms - gone < 10 ? (long)ms - gone : 10);
    }
}
API R nvmlEventSetFree(Set *s) { if (!s) return INVAL; ENTER0(); free(s); return OK; }
