// SHA-256 of messages of up to 55 bytes, one a thread: rotations, big-endian words, constants by index.
typedef unsigned int u32;

__constant__ u32 K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

__device__ u32 rotr(u32 x, int n) { return x >> n | x << (32 - n); }

extern "C" __global__ void sha256_short(const unsigned char* messages, const int* lengths, u32* digests, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned char block[64];
    const int length = lengths[i];
    for (int b = 0; b < 64; b++) block[b] = b < length ? messages[i * 64 + b] : b == length ? 0x80 : 0;
    block[62] = (unsigned char)(length * 8 >> 8);
    block[63] = (unsigned char)(length * 8);

    u32 w[16];
    for (int t = 0; t < 16; t++)
        w[t] = (u32)block[4 * t] << 24 | (u32)block[4 * t + 1] << 16 | (u32)block[4 * t + 2] << 8 | block[4 * t + 3];
    u32 s[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    u32 a = s[0], b = s[1], c = s[2], d = s[3], e = s[4], f = s[5], g = s[6], h = s[7];
    for (int t = 0; t < 64; t++) {
        if (t >= 16) {
            u32 x = w[(t - 15) & 15], y = w[(t - 2) & 15];
            w[t & 15] += (rotr(x, 7) ^ rotr(x, 18) ^ x >> 3) + w[(t - 7) & 15] + (rotr(y, 17) ^ rotr(y, 19) ^ y >> 10);
        }
        u32 t1 = h + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((e & f) ^ (~e & g)) + K[t] + w[t & 15];
        u32 t2 = (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    u32 out[8] = {a, b, c, d, e, f, g, h};
    for (int k = 0; k < 8; k++) digests[i * 8 + k] = s[k] + out[k];
}
