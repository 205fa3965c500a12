// Prints the fragment, copy and shared-memory maps of CuTe (NVIDIA cutlass), one
// layout a line.
#include <cstdint>
#include <cstdio>

#include <cute/layout.hpp>
#include <cute/swizzle.hpp>
#include <cute/atom/copy_traits_sm75.hpp>
#include <cute/atom/copy_traits_sm90.hpp>
#include <cute/atom/mma_traits_sm70.hpp>
#include <cute/atom/mma_traits_sm75.hpp>
#include <cute/atom/mma_traits_sm80.hpp>
#include <cute/atom/mma_traits_sm89.hpp>
#include <cute/atom/mma_traits_sm90.hpp>
#include <cute/atom/mma_traits_sm90_gmma.hpp>

using namespace cute;

template <class Map>
void values(char const* name, Map map) {
  printf("%s ", name);
  print(map);
  printf("\n");
}

template <class Op>
void mma(char const* ptx) {
  using Traits = MMA_Traits<Op>;
  typename Traits::Shape_MNK shape;
  printf("mma %s %d %d %d\n", ptx, int(get<0>(shape)), int(get<1>(shape)), int(get<2>(shape)));
  values("lanes", typename Traits::ThrID{});
  values("a", typename Traits::ALayout{});
  values("b", typename Traits::BLayout{});
  values("c", typename Traits::CLayout{});
}

// A copy's maps, to bits.
template <class Op>
void copy(char const* ptx) {
  using Traits = Copy_Traits<Op>;
  printf("copy %s\n", ptx);
  values("source", typename Traits::SrcLayout{});
  values("destination", typename Traits::DstLayout{});
}

template <class Op>
void wgmma(char const* ptx) {
  using Traits = MMA_Traits<Op>;
  printf("wgmma %s\n", ptx);
  values("a", typename Traits::ALayout{});
  values("c", typename Traits::CLayout{});
}

// A canonical layout: where the elements of 64 rows, or columns, by so many of the
// other dimension lie.
template <int K, class Layout>
void shared(char const* name, Layout atom, int bytes) {
  printf("shared %s %d %d\n", name, 8 * bytes, K);
  values("offsets", tile_to_shape(atom, Shape<_64, Int<K>>{}));
}

template <class T, int K>
void canonical() {
  int n = sizeof(T);
  shared<K>("K 0", GMMA::Layout_K_INTER_Atom<T>{}, n);
  shared<K>("K 32", GMMA::Layout_K_SW32_Atom<T>{}, n);
  shared<2 * K>("K 64", GMMA::Layout_K_SW64_Atom<T>{}, n);
  shared<4 * K>("K 128", GMMA::Layout_K_SW128_Atom<T>{}, n);
  if constexpr (sizeof(T) == 2) {
    shared<K>("MN 0", GMMA::Layout_MN_INTER_Atom<T>{}, n);
    shared<K>("MN 32", GMMA::Layout_MN_SW32_Atom<T>{}, n);
    shared<K>("MN 64", GMMA::Layout_MN_SW64_Atom<T>{}, n);
    shared<K>("MN 128", GMMA::Layout_MN_SW128_Atom<T>{}, n);
  }
}

int main() {
  mma<SM70_8x8x4_F32F16F16F32_TN>("m8n8k4.row.col.f32.f16.f16.f32");
  mma<SM70_8x8x4_F32F16F16F32_NT>("m8n8k4.col.row.f32.f16.f16.f32");
  mma<SM70_8x8x4_F16F16F16F16_NN>("m8n8k4.col.col.f16.f16.f16.f16");
  mma<SM70_8x8x4_F16F16F16F16_TT>("m8n8k4.row.row.f16.f16.f16.f16");
  mma<SM75_16x8x8_F32F16F16F32_TN>("m16n8k8.row.col.f32.f16.f16.f32");
  mma<SM75_8x8x16_S32S8S8S32_TN>("m8n8k16.row.col.s32.s8.s8.s32");
  mma<SM80_16x8x8_F16F16F16F16_TN>("m16n8k8.row.col.f16.f16.f16.f16");
  mma<SM80_16x8x8_F32BF16BF16F32_TN>("m16n8k8.row.col.f32.bf16.bf16.f32");
  mma<SM80_16x8x16_F16F16F16F16_TN>("m16n8k16.row.col.f16.f16.f16.f16");
  mma<SM80_16x8x16_F32F16F16F32_TN>("m16n8k16.row.col.f32.f16.f16.f32");
  mma<SM80_16x8x16_F32BF16BF16F32_TN>("m16n8k16.row.col.f32.bf16.bf16.f32");
  mma<SM80_16x8x4_F32TF32TF32F32_TN>("m16n8k4.row.col.f32.tf32.tf32.f32");
  mma<SM80_16x8x8_F32TF32TF32F32_TN>("m16n8k8.row.col.f32.tf32.tf32.f32");
  mma<SM80_8x8x4_F64F64F64F64_TN>("m8n8k4.row.col.f64.f64.f64.f64");
  mma<SM90_16x8x4_F64F64F64F64_TN>("m16n8k4.row.col.f64.f64.f64.f64");
  mma<SM90_16x8x8_F64F64F64F64_TN>("m16n8k8.row.col.f64.f64.f64.f64");
  mma<SM90_16x8x16_F64F64F64F64_TN>("m16n8k16.row.col.f64.f64.f64.f64");
  mma<SM80_8x8x16_S32U8S8S32_TN>("m8n8k16.row.col.s32.u8.s8.s32");
  mma<SM80_16x8x16_S32S8U8S32_TN>("m16n8k16.row.col.s32.s8.u8.s32");
  mma<SM80_16x8x32_S32S8S8S32_TN>("m16n8k32.row.col.s32.s8.s8.s32");
  mma<SM80_16x8x32_S32U8S8S32_TN>("m16n8k32.row.col.s32.u8.s8.s32");
  mma<SM80_16x8x32_S32U8U8S32_TN_SATURATE>("m16n8k32.row.col.satfinite.s32.u8.u8.s32");
  mma<SM80_8x8x32_S32S4S4S32_TN>("m8n8k32.row.col.s32.s4.s4.s32");
  // Not SM80_16x8x32_S32S4S4S32_TN, whose map of B gives some elements to two threads
  // and others to none.
  mma<SM80_16x8x64_S32S4U4S32_TN>("m16n8k64.row.col.s32.s4.u4.s32");
  mma<SM89_16x8x32_F32E4M3E4M3F32_TN>("m16n8k32.row.col.f32.e4m3.e4m3.f32");
  mma<SM89_16x8x32_F32E5M2E4M3F32_TN>("m16n8k32.row.col.f32.e5m2.e4m3.f32");
  mma<SM89_16x8x32_F16E4M3E5M2F16_TN>("m16n8k32.row.col.f16.e4m3.e5m2.f16");

  copy<SM75_U32x1_LDSM_N>("ldmatrix.sync.aligned.m8n8.x1");
  copy<SM75_U32x2_LDSM_N>("ldmatrix.sync.aligned.m8n8.x2");
  copy<SM75_U32x4_LDSM_N>("ldmatrix.sync.aligned.m8n8.x4");
  copy<SM75_U16x2_LDSM_T>("ldmatrix.sync.aligned.m8n8.x1.trans");
  copy<SM75_U16x4_LDSM_T>("ldmatrix.sync.aligned.m8n8.x2.trans");
  copy<SM75_U16x8_LDSM_T>("ldmatrix.sync.aligned.m8n8.x4.trans");
  copy<SM90_U32x1_STSM_N>("stmatrix.sync.aligned.m8n8.x1");
  copy<SM90_U32x2_STSM_N>("stmatrix.sync.aligned.m8n8.x2");
  copy<SM90_U32x4_STSM_N>("stmatrix.sync.aligned.m8n8.x4");
  copy<SM90_U16x2_STSM_T>("stmatrix.sync.aligned.m8n8.x1.trans");
  copy<SM90_U16x4_STSM_T>("stmatrix.sync.aligned.m8n8.x2.trans");
  copy<SM90_U16x8_STSM_T>("stmatrix.sync.aligned.m8n8.x4.trans");

  wgmma<SM90::GMMA::MMA_64x8x16_F32F16F16_RS<GMMA::Major::K, GMMA::Major::K>>("8 16");
  wgmma<SM90::GMMA::MMA_64x128x16_F32BF16BF16_RS<GMMA::Major::K, GMMA::Major::K>>("128 16");
  wgmma<SM90::GMMA::MMA_64x256x16_F16F16F16_RS<GMMA::Major::K, GMMA::Major::K>>("256 16");
  wgmma<SM90::GMMA::MMA_64x32x8_F32TF32TF32_RS_TN<>>("32 32");
  wgmma<SM90::GMMA::MMA_64x64x32_F32E4M3E5M2_RS_TN<>>("64 8");
  wgmma<SM90::GMMA::MMA_64x96x32_S32S8S8_RS_TN>("96 8");

  canonical<half_t, 16>();
  canonical<tfloat32_t, 8>();
  canonical<int8_t, 32>();
}
