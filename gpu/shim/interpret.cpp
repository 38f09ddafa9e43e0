// An interpreter for the `asm` blocks of chain.cuh, and the comparison of their results with the host's
// arithmetic.
#define SPK_HOST 1
#include "../kernels/chain.cuh"

#include <cstdio>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace spk_shim {
namespace {

// An opcode such as `madc.hi.cc.u32`: its operation, and its use of the carry.
struct Opcode {
    std::string name;
    bool high = false, reads_carry = false, writes_carry = false;
};

Opcode opcode_of(const std::string &word) {
    std::stringstream parts(word);
    Opcode opcode;
    std::getline(parts, opcode.name, '.');
    if (opcode.name.back() == 'c' && opcode.name != "mad" && opcode.name.size() == 4) {
        opcode.name.pop_back();
        opcode.reads_carry = true;
    }
    std::string part;
    bool typed = false, half = false;
    while (std::getline(parts, part, '.')) {
        require(!typed, "an opcode has a part after its type");
        if (part == "lo" || part == "hi") {
            opcode.high = part == "hi";
            half = true;
        } else if (part == "cc") {
            opcode.writes_carry = true;
        } else {
            require(part == "u32", "an opcode of another type");
            typed = true;
        }
    }
    bool multiplies = opcode.name == "mad";
    require(multiplies || opcode.name == "add" || opcode.name == "sub", "an opcode that is not interpreted");
    require(typed && multiplies == half, "an opcode without its half or its type");
    return opcode;
}

} // namespace

void interpret(const char *text, std::initializer_list<unsigned *> outputs, std::initializer_list<unsigned> inputs) {
    std::vector<uint64_t> registers;
    for (unsigned *output : outputs) {
        registers.push_back(*output);
    }
    registers.insert(registers.end(), inputs.begin(), inputs.end());
    // A block begins without a carry, and must not use one before it is set.
    bool carry_is_set = false;
    uint64_t carry = 0;
    std::stringstream lines(text);
    std::string line;
    while (std::getline(lines, line, ';')) {
        std::stringstream words(line);
        std::string word;
        if (!(words >> word)) {
            continue;
        }
        Opcode opcode = opcode_of(word);
        std::vector<uint64_t> operands;
        size_t target = registers.size();
        bool first = true;
        while (words >> word) {
            if (word.back() == ',') {
                word.pop_back();
            }
            bool is_register = word[0] == '%';
            size_t number = std::stoul(word.substr(is_register));
            require(!is_register || number < registers.size(), "an operand that does not exist");
            if (first) {
                require(is_register && number < outputs.size(), "a result that is not an output");
                target = number;
                first = false;
            } else {
                operands.push_back(is_register ? registers[number] : number);
            }
        }
        require(operands.size() == (opcode.name == "mad" ? 3 : 2), "a wrong number of operands");
        require(!opcode.reads_carry || carry_is_set, "a carry is read before it is set");
        uint64_t in = opcode.reads_carry ? carry : 0, result;
        if (opcode.name == "mad") {
            uint64_t product = operands[0] * operands[1];
            result = (opcode.high ? product >> 32 : product & 0xffffffffu) + operands[2] + in;
        } else if (opcode.name == "add") {
            result = operands[0] + operands[1] + in;
        } else {
            result = operands[0] - operands[1] - in;
        }
        registers[target] = result & 0xffffffffu;
        // A borrow sets all higher bits.
        carry = (result >> 32) & 1;
        carry_is_set = opcode.writes_carry;
    }
    size_t number = 0;
    for (unsigned *output : outputs) {
        *output = unsigned(registers[number++]);
    }
}

} // namespace spk_shim

namespace {

using spk::u32;

struct Numbers {
    u32 r[8], a[8], b[8], factor, low, addend, top;
};

// Often words of zeros or of ones, so that carries propagate far.
u32 random_word(std::mt19937_64 &random) {
    u32 word = u32(random());
    switch (random() % 4) {
    case 0: return 0;
    case 1: return 0xffffffffu;
    default: return word;
    }
}

Numbers random_numbers(std::mt19937_64 &random) {
    Numbers numbers;
    u32 *words = reinterpret_cast<u32 *>(&numbers);
    for (size_t i = 0; i < sizeof(Numbers) / sizeof(u32); i++) {
        words[i] = random_word(random);
    }
    return numbers;
}

bool differ(const Numbers &a, const Numbers &b) { return std::memcmp(&a, &b, sizeof(Numbers)) != 0; }

} // namespace

// Runs every chain in both ways on `rounds` random inputs; returns the name of the first chain that differs,
// or null.
extern "C" const char *host_spk_compare_chains(unsigned long long seed, unsigned long long rounds) {
    std::mt19937_64 random(seed);
    for (unsigned long long round = 0; round < rounds; round++) {
        const Numbers start = random_numbers(random);
        Numbers native = start, text = start;
        spk::chain::mad_row(native.r, native.a, native.factor, native.top);
        spk::chain_text::mad_row(text.r, text.a, text.factor, text.top);
        if (differ(native, text)) {
            return "mad_row";
        }
        // These two must not overflow: their last words are small.
        Numbers small = start;
        small.r[7] >>= 1;
        small.a[6] >>= 1;
        native = text = small;
        spk::chain::mad_row_full(native.r, native.a, native.factor);
        spk::chain_text::mad_row_full(text.r, text.a, text.factor);
        if (differ(native, text)) {
            return "mad_row_full";
        }
        native = text = small;
        spk::chain::shift_mad_row(native.low, native.addend, native.r, native.a, native.factor);
        spk::chain_text::shift_mad_row(text.low, text.addend, text.r, text.a, text.factor);
        if (differ(native, text)) {
            return "shift_mad_row";
        }
        native = text = start;
        native.top = spk::chain::add(native.r, native.a, native.b);
        text.top = spk::chain_text::add(text.r, text.a, text.b);
        if (differ(native, text)) {
            return "add";
        }
        native = text = start;
        native.top = spk::chain::sub(native.r, native.a, native.b);
        text.top = spk::chain_text::sub(text.r, text.a, text.b);
        if (differ(native, text)) {
            return "sub";
        }
    }
    return nullptr;
}
