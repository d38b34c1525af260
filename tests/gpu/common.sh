# Of tests/gpu/run and tests/gpu/ladder, which source it.

# arguments USAGE_FILE PARTS ARGUMENT...   sets build, out, parts; the head of the script is its help.
arguments() {
  local script=$1 known=$2 part
  shift 2
  case ${1:-} in
    -h | --help | '')
      sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$script"
      [ $# != 0 ] && exit 0 || exit 2
      ;;
  esac
  build=$1
  if [ ! -x "$build/bin/warpline-bench-kernels" ]; then
    {
      echo "$script: $build/bin has no warpline-bench-kernels; where CUDA is found, this builds all that is needed:"
      echo "  cmake --preset release && cmake --build build/release"
      echo "tests/gpu/ladder needs no more than --target warpline-bench-kernels"
    } >&2
    exit 2
  fi
  build=$(realpath "$build")
  out=${2:-$build/gpu}
  shift $(($# < 2 ? $# : 2))
  for part in "$@"; do
    [[ " $known " == *" $part "* ]] || { echo "$script: unknown part '$part'; there are: $known" >&2; exit 2; }
  done
  parts=" ${*:-$known} "
  mkdir -p "$out"
  out=$(realpath "$out")
  export LD_LIBRARY_PATH="$build/lib:${LD_LIBRARY_PATH:-}"
}

chosen() { [[ $parts == *" $1 "* ]]; }

# The first GPU that this build runs on, and its driver; empty without one. The benchmark decides, as nvidia-smi may be
# missing where a GPU is, and prints its errors where a name is expected.
gpu_name() {
  local name driver
  name=$("$build/bin/warpline-bench-kernels" --mode=once --ops=reduce --shapes=1 --variants=naive 2>/dev/null | head -n 1)
  [[ $name == *"compute capability"* ]] || return 0
  driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1 | grep -E '^[0-9.]+$')
  echo "$name; driver ${driver:-unknown}"
}

# cuBLASLt is not shipped, and not every machine has it where a CUDA installation does.
find_cublaslt() {
  local found
  [ -z "${WARPLINE_CUDA_LIB:-}" ] && [ ! -e /usr/local/cuda/lib64/libcublasLt.so.13 ] || return 0
  found=$(find / -name libcublasLt.so.13 -not -path '/proc/*' 2>/dev/null | head -n 1)
  [ -z "$found" ] || export WARPLINE_CUDA_LIB=$(dirname "$found")
}
