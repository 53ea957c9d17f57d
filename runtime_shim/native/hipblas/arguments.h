// Parameters of a function by the kinds of its arguments, of which there are one to 22: SX_DECLARE(Op, N) is
// "Op::Cuda a2, N::Cuda a1", SX_USE(Op, N) "a2, a1".
#pragma once

#define SX_PASTE_(a, b) a##b
#define SX_PASTE(a, b) SX_PASTE_(a, b)
#define SX_COUNT_(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, _14, _15, _16, _17, _18, _19, _20, _21, _22, n, ...) n
#define SX_COUNT(...) \
  SX_COUNT_(__VA_ARGS__, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)
#define SX_DECLARE(...) SX_PASTE(SX_D, SX_COUNT(__VA_ARGS__))(__VA_ARGS__)
#define SX_USE(...) SX_PASTE(SX_U, SX_COUNT(__VA_ARGS__))

#define SX_D1(k) k::Cuda a1
#define SX_U1 a1
#define SX_D2(k, ...) k::Cuda a2, SX_D1(__VA_ARGS__)
#define SX_U2 a2, SX_U1
#define SX_D3(k, ...) k::Cuda a3, SX_D2(__VA_ARGS__)
#define SX_U3 a3, SX_U2
#define SX_D4(k, ...) k::Cuda a4, SX_D3(__VA_ARGS__)
#define SX_U4 a4, SX_U3
#define SX_D5(k, ...) k::Cuda a5, SX_D4(__VA_ARGS__)
#define SX_U5 a5, SX_U4
#define SX_D6(k, ...) k::Cuda a6, SX_D5(__VA_ARGS__)
#define SX_U6 a6, SX_U5
#define SX_D7(k, ...) k::Cuda a7, SX_D6(__VA_ARGS__)
#define SX_U7 a7, SX_U6
#define SX_D8(k, ...) k::Cuda a8, SX_D7(__VA_ARGS__)
#define SX_U8 a8, SX_U7
#define SX_D9(k, ...) k::Cuda a9, SX_D8(__VA_ARGS__)
#define SX_U9 a9, SX_U8
#define SX_D10(k, ...) k::Cuda a10, SX_D9(__VA_ARGS__)
#define SX_U10 a10, SX_U9
#define SX_D11(k, ...) k::Cuda a11, SX_D10(__VA_ARGS__)
#define SX_U11 a11, SX_U10
#define SX_D12(k, ...) k::Cuda a12, SX_D11(__VA_ARGS__)
#define SX_U12 a12, SX_U11
#define SX_D13(k, ...) k::Cuda a13, SX_D12(__VA_ARGS__)
#define SX_U13 a13, SX_U12
#define SX_D14(k, ...) k::Cuda a14, SX_D13(__VA_ARGS__)
#define SX_U14 a14, SX_U13
#define SX_D15(k, ...) k::Cuda a15, SX_D14(__VA_ARGS__)
#define SX_U15 a15, SX_U14
#define SX_D16(k, ...) k::Cuda a16, SX_D15(__VA_ARGS__)
#define SX_U16 a16, SX_U15
#define SX_D17(k, ...) k::Cuda a17, SX_D16(__VA_ARGS__)
#define SX_U17 a17, SX_U16
#define SX_D18(k, ...) k::Cuda a18, SX_D17(__VA_ARGS__)
#define SX_U18 a18, SX_U17
#define SX_D19(k, ...) k::Cuda a19, SX_D18(__VA_ARGS__)
#define SX_U19 a19, SX_U18
#define SX_D20(k, ...) k::Cuda a20, SX_D19(__VA_ARGS__)
#define SX_U20 a20, SX_U19
#define SX_D21(k, ...) k::Cuda a21, SX_D20(__VA_ARGS__)
#define SX_U21 a21, SX_U20
#define SX_D22(k, ...) k::Cuda a22, SX_D21(__VA_ARGS__)
#define SX_U22 a22, SX_U21
