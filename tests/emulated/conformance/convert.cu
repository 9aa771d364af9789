// Conversions between all pairs of types, in the roundings that PTX has, saturating and flushing.
#include "elementwise.cuh"

// Results of 8 bits are kept in 32, extended as the instruction extends them.
#define CVT(name, op, R, A) PTX1(name, op, R, A)
#define FROM_F32(to, R) \
    CVT(cvt_rni_##to##_f32, "cvt.rni." #to ".f32", R, f32) \
    CVT(cvt_rzi_##to##_f32, "cvt.rzi." #to ".f32", R, f32) \
    CVT(cvt_rmi_##to##_f32, "cvt.rmi." #to ".f32", R, f32) \
    CVT(cvt_rpi_##to##_f32, "cvt.rpi." #to ".f32", R, f32) \
    CVT(cvt_rzi_ftz_##to##_f32, "cvt.rzi.ftz." #to ".f32", R, f32)
FROM_F32(u8, u32)
FROM_F32(s8, s32)
FROM_F32(u16, u16)
FROM_F32(s16, s16)
FROM_F32(u32, u32)
FROM_F32(s32, s32)
FROM_F32(u64, u64)
FROM_F32(s64, s64)
#define FROM_F32_FTZ(to, R) \
    CVT(cvt_rni_ftz_##to##_f32, "cvt.rni.ftz." #to ".f32", R, f32) \
    CVT(cvt_rmi_ftz_##to##_f32, "cvt.rmi.ftz." #to ".f32", R, f32) \
    CVT(cvt_rpi_ftz_##to##_f32, "cvt.rpi.ftz." #to ".f32", R, f32)
FROM_F32_FTZ(u8, u32)
FROM_F32_FTZ(s16, s16)
FROM_F32_FTZ(u32, u32)
FROM_F32_FTZ(s32, s32)
FROM_F32_FTZ(u64, u64)
FROM_F32_FTZ(s64, s64)
#define FROM_F64(to, R) \
    CVT(cvt_rni_##to##_f64, "cvt.rni." #to ".f64", R, f64) \
    CVT(cvt_rzi_##to##_f64, "cvt.rzi." #to ".f64", R, f64) \
    CVT(cvt_rmi_##to##_f64, "cvt.rmi." #to ".f64", R, f64) \
    CVT(cvt_rpi_##to##_f64, "cvt.rpi." #to ".f64", R, f64)
FROM_F64(u8, u32)
FROM_F64(s8, s32)
FROM_F64(u16, u16)
FROM_F64(s16, s16)
FROM_F64(u32, u32)
FROM_F64(s32, s32)
FROM_F64(u64, u64)
FROM_F64(s64, s64)
#define FROM_F16(to, R) \
    CVT(cvt_rni_##to##_f16, "cvt.rni." #to ".f16", R, f16) \
    CVT(cvt_rzi_##to##_f16, "cvt.rzi." #to ".f16", R, f16) \
    CVT(cvt_rmi_##to##_f16, "cvt.rmi." #to ".f16", R, f16)
FROM_F16(u8, u32)
FROM_F16(s8, s32)
FROM_F16(u16, u16)
FROM_F16(s16, s16)
FROM_F16(u32, u32)
FROM_F16(s32, s32)
FROM_F16(u64, u64)
FROM_F16(s64, s64)
#define FROM_INTEGER(from, A) \
    CVT(cvt_rn_f32_##from, "cvt.rn.f32." #from, f32, A) \
    CVT(cvt_rz_f32_##from, "cvt.rz.f32." #from, f32, A) \
    CVT(cvt_rm_f32_##from, "cvt.rm.f32." #from, f32, A) \
    CVT(cvt_rp_f32_##from, "cvt.rp.f32." #from, f32, A) \
    CVT(cvt_rn_f64_##from, "cvt.rn.f64." #from, f64, A) \
    CVT(cvt_rz_f64_##from, "cvt.rz.f64." #from, f64, A) \
    CVT(cvt_rp_f64_##from, "cvt.rp.f64." #from, f64, A) \
    CVT(cvt_rn_f16_##from, "cvt.rn.f16." #from, f16, A) \
    CVT(cvt_rz_f16_##from, "cvt.rz.f16." #from, f16, A)
FROM_INTEGER(u8, u32)
FROM_INTEGER(s8, s32)
FROM_INTEGER(u16, u16)
FROM_INTEGER(s16, s16)
FROM_INTEGER(u32, u32)
FROM_INTEGER(s32, s32)
FROM_INTEGER(u64, u64)
FROM_INTEGER(s64, s64)
KERNEL1(byte_1_to_f32, f32, u32, r = (f32)((x >> 8) & 0xff))
KERNEL1(byte_3_to_f32, f32, u32, r = (f32)(x >> 24))
KERNEL1(signed_byte_2_to_f32, f32, u32, r = (f32)(s8)(x >> 16))
// Bytes of a value in a register, which the conversion itself may select.
KERNEL1(computed_byte_0, f32, u32, r = (f32)(u8)(x * 3))
KERNEL1(computed_byte_1, f32, u32, r = (f32)(u8)(x * 3 >> 8))
KERNEL1(computed_byte_2, f32, u32, r = (f32)(u8)(x * 3 >> 16))
KERNEL1(computed_byte_3, f32, u32, r = (f32)(u8)(x * 3 >> 24))
KERNEL1(computed_signed_byte_1, f32, u32, r = (f32)(s8)(x * 3 >> 8))
KERNEL1(computed_signed_byte_3, f32, u32, r = (f32)(s8)(x * 3 >> 24))
KERNEL1(computed_high_short, f32, u32, r = (f32)(u16)(x * 3 >> 16))
KERNEL1(computed_signed_high_short, f64, u32, r = (f64)(s16)(x * 3 >> 16))
KERNEL1(high_short_to_f32, f32, u32, r = (f32)(s16)(x >> 16))

CVT(cvt_f32_f16, "cvt.f32.f16", f32, f16)
CVT(cvt_ftz_f32_f16, "cvt.ftz.f32.f16", f32, f16)
CVT(cvt_f64_f16, "cvt.f64.f16", f64, f16)
CVT(cvt_f64_f32, "cvt.f64.f32", f64, f32)
CVT(cvt_ftz_f64_f32, "cvt.ftz.f64.f32", f64, f32)
CVT(cvt_rn_f16_f32, "cvt.rn.f16.f32", f16, f32)
CVT(cvt_rz_f16_f32, "cvt.rz.f16.f32", f16, f32)
CVT(cvt_rm_f16_f32, "cvt.rm.f16.f32", f16, f32)
CVT(cvt_rp_f16_f32, "cvt.rp.f16.f32", f16, f32)
CVT(cvt_rn_ftz_f16_f32, "cvt.rn.ftz.f16.f32", f16, f32)
CVT(cvt_rn_sat_f16_f32, "cvt.rn.sat.f16.f32", f16, f32)
CVT(cvt_rn_bf16_f32, "cvt.rn.bf16.f32", bf16, f32)
CVT(cvt_rz_bf16_f32, "cvt.rz.bf16.f32", bf16, f32)
CVT(cvt_rn_relu_bf16_f32, "cvt.rn.relu.bf16.f32", bf16, f32)
CVT(cvt_rn_f16_f64, "cvt.rn.f16.f64", f16, f64)
CVT(cvt_rz_f16_f64, "cvt.rz.f16.f64", f16, f64)
CVT(cvt_rn_f32_f64, "cvt.rn.f32.f64", f32, f64)
CVT(cvt_rz_f32_f64, "cvt.rz.f32.f64", f32, f64)
CVT(cvt_rm_f32_f64, "cvt.rm.f32.f64", f32, f64)
CVT(cvt_rp_f32_f64, "cvt.rp.f32.f64", f32, f64)
CVT(cvt_rn_ftz_f32_f64, "cvt.rn.ftz.f32.f64", f32, f64)
CVT(cvt_rn_sat_f32_f64, "cvt.rn.sat.f32.f64", f32, f64)
CVT(cvt_sat_f32_f32, "cvt.sat.f32.f32", f32, f32)
CVT(cvt_ftz_sat_f32_f32, "cvt.ftz.sat.f32.f32", f32, f32)
CVT(cvt_rni_f32_f32, "cvt.rni.f32.f32", f32, f32)
CVT(cvt_rzi_f32_f32, "cvt.rzi.f32.f32", f32, f32)
CVT(cvt_rmi_f32_f32, "cvt.rmi.f32.f32", f32, f32)
CVT(cvt_rpi_f32_f32, "cvt.rpi.f32.f32", f32, f32)
CVT(cvt_rni_ftz_f32_f32, "cvt.rni.ftz.f32.f32", f32, f32)
CVT(cvt_rmi_sat_f32_f32, "cvt.rmi.sat.f32.f32", f32, f32)
CVT(cvt_rmi_ftz_f32_f32, "cvt.rmi.ftz.f32.f32", f32, f32)
CVT(cvt_rpi_ftz_f32_f32, "cvt.rpi.ftz.f32.f32", f32, f32)
CVT(cvt_rzi_ftz_f32_f32, "cvt.rzi.ftz.f32.f32", f32, f32)
CVT(cvt_rni_f64_f64, "cvt.rni.f64.f64", f64, f64)
CVT(cvt_rzi_f64_f64, "cvt.rzi.f64.f64", f64, f64)
CVT(cvt_rmi_f64_f64, "cvt.rmi.f64.f64", f64, f64)
CVT(cvt_rpi_f64_f64, "cvt.rpi.f64.f64", f64, f64)
CVT(cvt_rni_f16_f16, "cvt.rni.f16.f16", f16, f16)
CVT(cvt_rmi_f16_f16, "cvt.rmi.f16.f16", f16, f16)
CVT(cvt_rpi_f16_f16, "cvt.rpi.f16.f16", f16, f16)
CVT(cvt_rzi_f16_f16, "cvt.rzi.f16.f16", f16, f16)
CVT(cvt_sat_f16_f16, "cvt.sat.f16.f16", f16, f16)
PTX2(cvt_rn_f16x2_f32, "cvt.rn.f16x2.f32", f16x2, f32, f32)
PTX2(cvt_rz_f16x2_f32, "cvt.rz.f16x2.f32", f16x2, f32, f32)
PTX2(cvt_rn_relu_f16x2_f32, "cvt.rn.relu.f16x2.f32", f16x2, f32, f32)
PTX2(cvt_rn_bf16x2_f32, "cvt.rn.bf16x2.f32", bf16x2, f32, f32)
PTX2(cvt_rz_bf16x2_f32, "cvt.rz.bf16x2.f32", bf16x2, f32, f32)
CVT(cvt_rna_tf32_f32, "cvt.rna.tf32.f32", tf32, f32)
#if __CUDA_ARCH__ >= 900
CVT(cvt_f32_bf16, "cvt.f32.bf16", f32, bf16)
CVT(cvt_rn_f16_bf16, "cvt.rn.f16.bf16", f16, bf16)
CVT(cvt_rn_bf16_f16, "cvt.rn.bf16.f16", bf16, f16)
CVT(cvt_rzi_s32_bf16, "cvt.rzi.s32.bf16", s32, bf16)
CVT(cvt_rn_bf16_s32, "cvt.rn.bf16.s32", bf16, s32)
CVT(cvt_rn_bf16_u16, "cvt.rn.bf16.u16", bf16, u16)
CVT(cvt_rn_tf32_f32, "cvt.rn.tf32.f32", tf32, f32)
CVT(cvt_rz_tf32_f32, "cvt.rz.tf32.f32", tf32, f32)
#endif
#if __CUDA_ARCH__ >= 890
PTX2(cvt_rn_satfinite_e4m3x2_f32, "cvt.rn.satfinite.e4m3x2.f32", u16, f32, f32)
PTX2(cvt_rn_satfinite_e5m2x2_f32, "cvt.rn.satfinite.e5m2x2.f32", u16, f32, f32)
CVT(cvt_rn_f16x2_e4m3x2, "cvt.rn.f16x2.e4m3x2", f16x2, u16)
CVT(cvt_rn_f16x2_e5m2x2, "cvt.rn.f16x2.e5m2x2", f16x2, u16)
#endif
CVT(cvt_sat_s32_u32, "cvt.sat.s32.u32", s32, u32)
CVT(cvt_sat_u32_s32, "cvt.sat.u32.s32", u32, s32)
CVT(cvt_sat_s8_s32, "cvt.sat.s8.s32", s32, s32)
CVT(cvt_sat_u8_s32, "cvt.sat.u8.s32", u32, s32)
CVT(cvt_sat_s16_s32, "cvt.sat.s16.s32", s16, s32)
CVT(cvt_sat_u16_u32, "cvt.sat.u16.u32", u16, u32)
CVT(cvt_sat_s32_s64, "cvt.sat.s32.s64", s32, s64)
CVT(cvt_sat_u32_u64, "cvt.sat.u32.u64", u32, u64)
CVT(cvt_s64_s32, "cvt.s64.s32", s64, s32)
CVT(cvt_s32_s8, "cvt.s32.s8", s32, s32)
CVT(cvt_u32_u8, "cvt.u32.u8", u32, u32)
CVT(cvt_s64_s16, "cvt.s64.s16", s64, s16)
PTX3(cvt_pack_sat_s8_s32, "cvt.pack.sat.s8.s32.b32", u32, s32, s32, u32)
PTX3(cvt_pack_sat_u8_s32, "cvt.pack.sat.u8.s32.b32", u32, s32, s32, u32)
PTX2(cvt_pack_sat_s16_s32, "cvt.pack.sat.s16.s32", u32, s32, s32)
PTX2(cvt_pack_sat_u16_s32, "cvt.pack.sat.u16.s32", u32, s32, s32)
