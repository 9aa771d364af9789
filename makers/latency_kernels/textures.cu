// Textures and surfaces: code of other forms than the catalog has, for makers/sass_latencies.py.

extern "C" __global__ void texture1(cudaTextureObject_t t, float *y, int n) {
    int i = blockIdx.x*blockDim.x+threadIdx.x;
    if (i<n) y[i] = tex1Dfetch<float>(t, i)+tex2D<float>(t, i*.5f, i*.25f);
}

extern "C" __global__ void texture2(cudaTextureObject_t t, cudaSurfaceObject_t s, float4 *y, int n) {
    int i = threadIdx.x;
    float4 a = tex2D<float4>(t, i*.5f, i*.25f), b = tex3D<float4>(t, i*.5f, i*.25f, 1.f),
        c = tex2DLod<float4>(t, i*.1f, 1.f, 2.f), d = tex2Dgather<float4>(t, 1.f, i*1.f, 2);
    float4 g = tex2DGrad<float4>(t, i*.1f, 2.f, make_float2(1, 2), make_float2(3, 4)),
        l = tex2DLayered<float4>(t, i*.1f, 2.f, 3);
    float4 e;
    surf2Dread(&e, s, i*16, 2);
    y[i] = make_float4(a.x+b.x+g.x, c.y*d.y+l.z, a.z-e.z, b.w*e.w);
    surf2Dwrite(a, s, i*16, 3);
}
