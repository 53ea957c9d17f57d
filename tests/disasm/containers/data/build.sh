#!/bin/sh
# Makes the cubins and fatbins of this directory.  Needs nvcc 13.0; PTXAS12 and PTXAS11 name the
# ptxas of CUDA 12.9 and 11.8 (wheels nvidia-cuda-nvcc-cu12 12.9.86 and nvidia-cuda-nvcc-cu11 11.8.89).
set -e
cd "$(dirname "$0")"
for arch in 75 80 90 120; do nvcc -cubin -arch=sm_$arch sample.cu -o cuda13_sm_$arch.cubin; done
nvcc -cubin -arch=sm_90 -rdc=true sample.cu -o cuda13_sm_90_relocatable.cubin
work=$(mktemp -d)
nvcc -ptx -arch=compute_75 sample.cu -o "$work/75.ptx"
nvcc -ptx -arch=compute_80 sample.cu -o "$work/80.ptx"
for f in 75 80; do
  sed 's/^.version .*/.version 8.7/' "$work/$f.ptx" > "$work/$f.12.ptx"
  sed 's/^.version .*/.version 7.8/' "$work/$f.ptx" > "$work/$f.11.ptx"
done
"$PTXAS12" -arch=sm_80 "$work/80.12.ptx" -o cuda12_sm_80.cubin
"$PTXAS12" -arch=sm_90a "$work/80.12.ptx" -o cuda12_sm_90a.cubin
"$PTXAS11" -arch=sm_75 "$work/75.11.ptx" -o cuda11_sm_75.cubin
for mode in none speed size; do
  nvcc -fatbin --compress-mode=$mode -gencode arch=compute_75,code=[sm_75,compute_75] \
    -gencode arch=compute_90a,code=sm_90a sample.cu -o $mode.fatbin
done
nvcc -fatbin -lineinfo -arch=sm_80 --compress-mode=size linked_b.cu -o named.fatbin
nvcc -fatbin -gencode arch=compute_80,code=compute_80 linked_b.cu -o ptx.fatbin
nvcc -rdc=true -arch=sm_90 -c linked_a.cu -o "$work/a.o"
nvcc -rdc=true -arch=sm_90 -c linked_b.cu -o "$work/b.o"
nvcc -dlink -fatbin -arch=sm_90 "$work/a.o" "$work/b.o" -o linked.fatbin
cp "$work/a.o" relocatable.o
mkdir -p /src && cp lines.cu lines.h /src  # the directory is in the line tables
here=$(pwd)
(
  cd /src
  nvcc -cubin -lineinfo -arch=sm_90 lines.cu -o "$here/lines_sm_90.cubin"
  nvcc -cubin -lineinfo -rdc=true -arch=sm_120 lines.cu -o "$here/lines_relocatable_sm_120.cubin"
  nvcc -cubin -G -rdc=true -arch=sm_75 lines.cu -o "$here/debug_relocatable_sm_75.cubin"
  nvcc -ptx -lineinfo -rdc=true -arch=compute_80 lines.cu -o "$work/lines.ptx"
)
sed 's/^.version .*/.version 8.7/' "$work/lines.ptx" > "$work/lines.12.ptx"
"$PTXAS12" -c -lineinfo -arch=sm_80 "$work/lines.12.ptx" -o lines_cuda12_relocatable_sm_80.cubin
rm -rf "$work"
